/** The event log: one row per event, written in the commit that it reports (promise 4) and read by cursor. */
import { LRUCache } from "lru-cache";
import { eventKeys } from "./rows.ts";
import { type Change, firstRow, type Kv } from "../store/kv.ts";
import { atMost } from "../base/at_most.ts";
import { Batcher } from "../base/batcher.ts";
import { shareReads } from "../store/layers/shared_reads.ts";
import type { Bell } from "../store/bell.ts";
import { sizeBound } from "../store/limits.ts";
import type { Runtime } from "../runtime.ts";
import { invalid } from "../errors.ts";
import { EVENT_ID, type EventName, isChatEvent, type LoggedEvent, type NewEvent, USUAL_EVENTS } from "./event.ts";
import { plain } from "./plain_json.ts";

export interface EventQuery {
  /** Id of the last event seen; null: from the oldest event kept. */
  after: string | null;
  /** Null: all. */
  types: readonly EventName[] | null;
  /** Null: all. */
  sessionId: string | null;
  limit: number;
}

interface EventPage {
  events: LoggedEvent[];
  /**
   * The `after` of the next page; null if there is nothing after the cursor, which stays valid. With a filter a page
   * may be empty although `next` is set, because a read examines a bounded number of events. Long events make a page
   * shorter than its limit.
   */
  next: string | null;
  /** Whether the read ended before the log did: the page was full, or enough events were examined. */
  isCut: boolean;
  /** Whether events after the cursor have been removed, because the reader was away for too long. */
  gap: boolean;
}

/** Prefix of the bell topics of new events; the account's id follows. */
const EVENTS_TOPIC = "events/";
/** Rows examined by one read, so that a filter without matches does not read the whole log in one request. */
const SCAN_LIMIT = 2_048;
/** Events per read of the store. */
export const EVENTS_A_READ = 128;
/** Accounts whose reads are shared. */
const MOST_READERS = 10_000;
/** Memory limit of a page's events, of which the first is always included. `next` leads to the rest. */
const PAGE_BYTES = 8 * 1024 ** 2;
/** Most bytes that count for one event: some values have no bound, and a commit takes less. */
const MOST_BYTES = 1024 ** 2;
const ID_PREFIX = "evt_";
const ID = new RegExp(`^${EVENT_ID}$`);

/**
 * Returns the place in the log that an event id denotes. Throws Problem validation_failed at `path` if it is not one.
 */
export function orderOf(id: string, path = "after"): string {
  if (!ID.test(id)) throw invalid(path, "is not the id of an event");
  return id.slice(ID_PREFIX.length);
}

interface EventLogDeps {
  kv: Kv;
  bell: Pick<Bell, "ring" | "hear">;
  runtime: Pick<Runtime, "clock">;
}

export type EventLog = ReturnType<typeof makeEventLog>;

export function makeEventLog({ kv, bell, runtime }: EventLogDeps) {
  const sharedGet = shareReads(kv);
  const readers = new LRUCache<string, Batcher<string | null, readonly LoggedEvent[]>>({
    ...atMost(MOST_READERS),
    memoMethod: (accountId) => new Batcher((orders) => readEach(kv, accountId, orders)),
  });

  /**
   * Reads the next `EVENTS_A_READ` events after this order (null: from the oldest), oldest first; fewer at the end of
   * the log. Concurrent equal calls share one read, because an event wakes every webhook and stream of its account.
   */
  function following(accountId: string, order: string | null): Promise<readonly LoggedEvent[]> {
    return readers.memo(accountId).add(order);
  }

  return {
    following,

    /**
     * Adds the event to the change, as one row, since webhooks read the log by cursor. After a successful commit the
     * caller calls `committed` with the event's account, so that webhooks and live streams read at once instead of at
     * their next sweep. The result holds the event's id once the commit has succeeded. `beside`: bytes of other rows
     * that are kept for as long as the event.
     */
    append(change: Change, event: NewEvent, beside = 0): { readonly id: string | null } {
      const { accountId } = event;
      const logs = plainEvent(event);
      const bytes = Math.min(sizeBound(logs.data) + beside, MOST_BYTES);
      const whole = { ...logs, createdAt: runtime.clock.now(), bytes };
      const appended: { id: string | null } = { id: null };
      change.ordered(eventKeys.eventOrder(accountId), (order) => {
        const id = ID_PREFIX + order;
        appended.id = id;
        const logged: LoggedEvent = { ...whole, id };
        return [{ kind: "set", key: eventKeys.event(accountId, order), value: logged }];
      });
      change.add(eventKeys.eventBytes(accountId), bytes);
      return appended;
    },

    committed(accountId: string): void {
      bell.ring(EVENTS_TOPIC + accountId);
    },

    /** Reads events after the cursor, oldest first. Throws Problem validation_failed if the cursor is not an event id. */
    async read(accountId: string, query: EventQuery): Promise<EventPage> {
      const after = query.after === null ? null : orderOf(query.after);
      const page = await scan((order) => following(accountId, order), { after, query });
      // Afterwards, so that it also tells of events that were removed during the read.
      const floor = after === null ? null : (await sharedGet(eventKeys.eventFloor(accountId))).value;
      return { ...page, gap: after !== null && floor !== null && after < floor };
    },

    /** Reads the account's latest events, newest first; fewer than the limit if they are long. */
    async latest(accountId: string, limit: number): Promise<LoggedEvent[]> {
      const found: LoggedEvent[] = [];
      let bytes = 0;
      for await (const { value } of kv.list({ prefix: eventKeys.events(accountId) }, { limit, reverse: true })) {
        bytes += sizeBound(value.data);
        if (found.length > 0 && bytes > PAGE_BYTES) break;
        found.push(value);
      }
      return found;
    },

    /** Resolves to the id of the newest event; null if there is none. */
    async newest(accountId: string): Promise<string | null> {
      return (await firstRow(kv, { prefix: eventKeys.events(accountId) }, { reverse: true }))?.value.id ?? null;
    },

    /**
     * Throws Problem validation_failed at `path` for an id that no event of the account can have. An id later than all
     * known events but not than the clock is accepted: an old backup may have been restored.
     */
    async checkCursor(accountId: string, id: string, path?: string): Promise<void> {
      const order = orderOf(id, path);
      const isAfter = (microseconds: number) => order.slice(0, String(microseconds).length) > String(microseconds);
      if (!isAfter(runtime.clock.now() * 1000)) return;
      // The clock may have been set back since that event.
      const { value } = await kv.get(eventKeys.eventOrder(accountId));
      if (value === null || isAfter(value)) throw invalid(path ?? "after", "is later than any event");
    },

    /** Calls `wake` after each commit that appended for the account; returns the unsubscribe function. */
    subscribe(accountId: string, wake: () => void): () => void {
      return bell.hear(EVENTS_TOPIC + accountId, wake);
    },
  };
}

/** Adds the removal of the account's events to the change. */
export function removeEvents(change: Change, accountId: string, events: readonly LoggedEvent[]): void {
  if (events.length === 0) return;
  for (const event of events) {
    const order = orderOf(event.id);
    change.delete(eventKeys.event(accountId, order));
    if (isChatEvent(event)) change.delete(eventKeys.chatEvent(accountId, event.sessionId, order));
  }
  const bytes = events.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
  change.add(eventKeys.eventBytes(accountId), -bytes);
}

/** Returns the event with its data reduced to plain JSON. */
function plainEvent<Event extends NewEvent>(event: Event): Event {
  return { ...event, sessionName: plain(event.sessionName), data: plain(event.data) };
}

/** Reads the events after each of the orders, equal ones once. */
async function readEach(
  kv: Kv,
  accountId: string,
  orders: readonly (string | null)[],
): Promise<PromiseSettledResult<readonly LoggedEvent[]>[]> {
  const reads = new Map([...new Set(orders)].map((order) => [order, readAfter(kv, accountId, order)]));
  return await Promise.allSettled(orders.map((order) => reads.get(order)!));
}

/** Reads the next `EVENTS_A_READ` events after the order (null: from the oldest), oldest first. */
export async function readAfter(kv: Kv, accountId: string, order: string | null): Promise<LoggedEvent[]> {
  const prefix = eventKeys.events(accountId);
  // A range includes its start. No order is a prefix of another, so appending a character skips exactly this one.
  const range = { prefix, ...(order === null ? {} : { start: [...prefix, order + "\0"] }) };
  return await Array.fromAsync(kv.list(range, { limit: EVENTS_A_READ }), ({ value }) => value);
}

async function scan(
  following: (order: string | null) => Promise<readonly LoggedEvent[]>,
  { after, query }: { after: string | null; query: EventQuery },
): Promise<Omit<EventPage, "gap">> {
  const events: LoggedEvent[] = [];
  let next: string | null = null;
  let bytes = 0;
  for (let looked = 0, order = after; looked < SCAN_LIMIT;) {
    const read = await following(order);
    for (const event of read) {
      if (fits(event, query)) {
        bytes += sizeBound(event.data);
        if (events.length > 0 && bytes > PAGE_BYTES) return { events, next, isCut: true };
        events.push(event);
      }
      next = event.id;
      if (events.length === query.limit) return { events, next, isCut: true };
    }
    if (read.length < EVENTS_A_READ) return { events, next, isCut: false };
    looked += read.length;
    order = orderOf(next!);
  }
  return { events, next, isCut: true };
}

/** Whether the event matches the query. */
export function fits(event: LoggedEvent, { types, sessionId }: Pick<EventQuery, "types" | "sessionId">): boolean {
  return (types ?? USUAL_EVENTS).includes(event.event) && (sessionId === null || sessionId === event.sessionId);
}
