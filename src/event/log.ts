/** The event log: appended in the commit that it reports (promise 4), read by cursor. */
import type { Change } from "../store/kv.ts";
import type { EventName, LoggedEvent, NewEvent } from "./event.ts";

export interface EventLog {
  /**
   * Adds the event, and the deliveries that it owes, to the change. Call `committed` after the commit succeeded, so
   * that the dispatcher and live streams look at once instead of at their next sweep.
   */
  append(change: Change, event: NewEvent): void;
  committed(): void;
  /** Events after the cursor, oldest first. */
  read(
    accountId: string,
    query: { after: string | null; types: readonly EventName[] | null; sessionId: string | null; limit: number },
  ): Promise<{ events: LoggedEvent[]; next: string | null }>;
  /** Calls `wake` after each commit that appended for the account; returns the unsubscribe function. */
  subscribe(accountId: string, wake: () => void): () => void;
}
