/** Taking single events out of an account's log. Those around them keep their places, and cursors what they have seen. */
import { Change, type Kv } from "../store/kv.ts";
import type { LoggedEvent } from "./event.ts";
import { EVENTS_A_READ, orderOf, readAfter, removeEvent } from "./log.ts";
import { eventKeys } from "./rows.ts";

interface ErasedEvents {
  change: Change;
  erased: LoggedEvent[];
  /** The place of the last one that was looked at; null at the end. */
  next: string | null;
}

/** Looks at the next events after a place (null: from the oldest). `among`: those that are to go. */
export async function eraseEvents(
  kv: Kv,
  accountId: string,
  { after, among }: { after: string | null; among(events: readonly LoggedEvent[]): Promise<LoggedEvent[]> },
): Promise<ErasedEvents> {
  const events = await readAfter(kv, accountId, after);
  const erased = await among(events);
  const change = new Change();
  for (const event of erased) removeEvent(change, event);
  if (erased.length > 0) change.add(eventKeys.eventCount(accountId), -erased.length);
  const last = events.at(-1);
  return { change, erased, next: events.length === EVENTS_A_READ ? orderOf(last!.id) : null };
}
