/** Retention of events, and their removal: the oldest when they are due, and single ones when a person is erased. */
import { eventKeys } from "./rows.ts";
import { Change, type Kv, LINGER_MS } from "../store/kv.ts";
import { type Runtime, sleep } from "../runtime.ts";
import type { LoggedEvent } from "./event.ts";
import { EVENTS_A_READ, orderOf, readAfter, removeEvent } from "./log.ts";

/** Most events kept per account, about 500 MB; the oldest are removed first. */
const EVENT_KEEP_COUNT = 500_000;
/** Events removed per commit, which prolongs the flush that it shares by about 1 ms. */
const BATCH = 100;

interface SweepEventsOptions {
  /** Stops the sweep between two commits. */
  signal?: AbortSignal;
  /** Maximum age of an event. */
  keepMs: number;
  keepCount?: number;
  /** Called before events are removed: webhooks record those that were never delivered as failed. */
  release?(accountId: string, events: readonly LoggedEvent[]): Promise<void>;
}

/**
 * Removes events that are too old or too many, oldest first, a batch per account in turn. Resolves to the number
 * removed.
 */
export async function sweepEvents(kv: Kv, runtime: Runtime, options: SweepEventsOptions): Promise<number> {
  const { keepMs, keepCount = EVENT_KEEP_COUNT, signal, release } = options;
  const oldest = runtime.clock.now() - keepMs;
  /** Surplus of events, by account, for accounts that may have more to remove. */
  const surplus = new Map<string, number>();
  for await (const { key, value: count } of kv.list({ prefix: eventKeys.eventCounts() })) {
    surplus.set(String(key[1]), Number(count) - keepCount);
  }
  let removed = 0;
  while (surplus.size > 0) {
    for (const [accountId, tooMany] of surplus) {
      if (signal?.aborted) return removed;
      const events: LoggedEvent[] = [];
      for await (const { value } of kv.list({ prefix: eventKeys.events(accountId) }, { limit: BATCH })) {
        if (value.createdAt >= oldest && tooMany <= events.length) break;
        events.push(value);
      }
      if (events.length > 0) {
        await release?.(accountId, events);
        await kv.commit(removal(accountId, events), { lingerUntil: sleep(runtime.clock, LINGER_MS, signal) });
        removed += events.length;
      }
      if (events.length < BATCH) surplus.delete(accountId);
      else surplus.set(accountId, tooMany - events.length);
    }
  }
  return removed;
}

function removal(accountId: string, events: readonly LoggedEvent[]): Change {
  const change = new Change();
  for (const event of events) removeEvent(change, event);
  const last = events.at(-1);
  if (last) change.set(eventKeys.eventFloor(accountId), orderOf(last.id));
  return change.add(eventKeys.eventCount(accountId), -events.length);
}

/**
 * Builds the removal of single events. The others keep their places, and cursors stay valid. Examines the next events
 * after a place (null: from the oldest); `among` selects those to remove. `next`: the place of the last event examined,
 * null at the end.
 */
export async function eraseEvents(
  kv: Kv,
  accountId: string,
  { after, among }: { after: string | null; among(events: readonly LoggedEvent[]): Promise<LoggedEvent[]> },
): Promise<{ change: Change; erased: LoggedEvent[]; next: string | null }> {
  const events = await readAfter(kv, accountId, after);
  const erased = await among(events);
  const change = new Change();
  for (const event of erased) removeEvent(change, event);
  if (erased.length > 0) change.add(eventKeys.eventCount(accountId), -erased.length);
  const last = events.at(-1);
  return { change, erased, next: events.length === EVENTS_A_READ ? orderOf(last!.id) : null };
}
