/** The event log: appended in the commit that it reports (promise 4), read by cursor. */
import type { Change } from "../store/kv.ts";
import type { EventName, LoggedEvent, NewEvent } from "./event.ts";

export interface EventQuery {
  /** Id of the last event seen; null: from the oldest kept. */
  after: string | null;
  /** Null: all. */
  types: readonly EventName[] | null;
  /** Null: all. */
  sessionId: string | null;
  limit: number;
}

export interface EventPage {
  events: LoggedEvent[];
  /**
   * What to give as `after` next; null when nothing lies after the cursor (keep the one you have). With a filter a page
   * may be empty and `next` still be given: a read looks at a bounded number of events.
   */
  next: string | null;
  /** True when events after the cursor are no longer kept: the reader was away for too long. */
  gap: boolean;
}

export interface EventLog {
  /**
   * Adds the event to the change; webhooks read the log by cursor, so the hot commit carries one row an event. Call
   * `committed` with the event's account after the commit succeeded, so that webhooks and live streams look at once
   * instead of at their next sweep. The result tells the event's id once the commit has succeeded.
   */
  append(change: Change, event: NewEvent): { readonly id: string | null };
  committed(accountId: string): void;
  /** Events after the cursor, oldest first. Throws Problem validation_failed for a cursor that is no event id. */
  read(accountId: string, query: EventQuery): Promise<EventPage>;
  /** Id of the newest event; null when there is none. */
  newest(accountId: string): Promise<string | null>;
  /** Calls `wake` after each commit that appended for the account; returns the unsubscribe function. */
  subscribe(accountId: string, wake: () => void): () => void;
}
