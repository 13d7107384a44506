/** Retention of events, and their removal: the oldest when they are due, and single ones when a person is erased. */
import { eventKeys } from "./rows.ts";
import { Change, type Kv, LINGER_MS } from "../store/kv.ts";
import { type Runtime, sleep } from "../runtime.ts";
import type { LoggedEvent } from "./event.ts";
import { EVENTS_A_READ, orderOf, readAfter, removeEvents } from "./event_log.ts";

/** Events removed per commit, which prolongs the flush that it shares by about 1 ms. */
const BATCH = 100;
/** Accounts that a warning names. */
const MOST_NAMED = 5;

interface SweepOptions {
  /** Stops the sweep between two commits. */
  signal?: AbortSignal;
  /** Called before events are removed: webhooks record those that were never delivered as failed. */
  release?(accountId: string, events: readonly LoggedEvent[]): Promise<void>;
}

interface SurplusOptions extends SweepOptions {
  /** Most bytes of an account's events, with what is kept beside them. */
  keepBytes: number;
  /** Removes what is kept beside events that are removed before their time. */
  forget(events: readonly LoggedEvent[]): Promise<void>;
}

/** Whether an event is to go, asked from the oldest on until one is not. */
type Judge = (event: LoggedEvent) => boolean;

/** Removes events that are older than `keepMs`, and resolves to their number. */
export async function sweepEvents(
  kv: Kv,
  runtime: Runtime,
  { keepMs, ...options }: SweepOptions & { keepMs: number },
): Promise<number> {
  const oldest = runtime.clock.now() - keepMs;
  const judges = new Map<string, Judge>();
  for (const prefix of [eventKeys.eventCounts(), eventKeys.allEventBytes()]) {
    for await (const { key } of kv.list({ prefix })) judges.set(String(key[1]), ({ createdAt }) => createdAt < oldest);
  }
  return await removeOldest(kv, runtime, judges, options);
}

/**
 * Removes the oldest events of accounts whose events take more than `keepBytes`, and resolves to their number. A cursor from
 * before is told of the gap.
 */
export async function sweepSurplus(kv: Kv, runtime: Runtime, options: SurplusOptions): Promise<number> {
  const { keepBytes, release, forget } = options;
  const judges = new Map<string, Judge>();
  for await (const { key, value } of kv.list({ prefix: eventKeys.allEventBytes() })) {
    let surplus = Number(value) - keepBytes;
    if (surplus <= 0) continue;
    judges.set(String(key[1]), ({ bytes = 0 }) => {
      if (surplus <= 0) return false;
      surplus -= bytes;
      return true;
    });
  }
  const accounts = [...judges.keys()].slice(0, MOST_NAMED);
  const removed = await removeOldest(kv, runtime, judges, {
    ...options,
    async release(accountId, events) {
      await release?.(accountId, events);
      await forget(events);
    },
  });
  if (removed > 0) {
    runtime.log.warn(
      { events: removed, accounts, keepBytes },
      "events removed early: their accounts have no more room",
    );
  }
  return removed;
}

/** Removes events from the oldest on, a batch per account in turn. Resolves to the number removed. */
async function removeOldest(
  kv: Kv,
  runtime: Runtime,
  judges: Map<string, Judge>,
  { signal, release }: SweepOptions,
): Promise<number> {
  let removed = 0;
  while (judges.size > 0) {
    for (const [accountId, goes] of judges) {
      if (signal?.aborted) return removed;
      const events: LoggedEvent[] = [];
      for await (const { value } of kv.list({ prefix: eventKeys.events(accountId) }, { limit: BATCH })) {
        if (!goes(value)) break;
        events.push(value);
      }
      if (events.length > 0) {
        await release?.(accountId, events);
        await kv.commit(removal(accountId, events), { lingerUntil: sleep(runtime.clock, LINGER_MS, signal) });
        removed += events.length;
      }
      if (events.length < BATCH) judges.delete(accountId);
    }
  }
  return removed;
}

function removal(accountId: string, events: readonly LoggedEvent[]): Change {
  const change = new Change();
  removeEvents(change, accountId, events);
  return change.set(eventKeys.eventFloor(accountId), orderOf(events.at(-1)!.id));
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
  removeEvents(change, accountId, erased);
  const last = events.at(-1);
  return { change, erased, next: events.length === EVENTS_A_READ ? orderOf(last!.id) : null };
}
