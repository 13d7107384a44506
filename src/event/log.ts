/** The event log: appended in the commit that it reports (promise 4), read by cursor, one row an event. */
import { eventKeys } from "./rows.ts";
import type { Change, Kv, Row } from "../store/kv.ts";
import { sizeBound } from "../store/layers/size.ts";
import type { Runtime } from "../runtime.ts";
import { invalid } from "../errors.ts";
import { EVENT_ID, type EventName, type LoggedEvent, type NewEvent, USUAL_EVENTS } from "./event.ts";
import { plain } from "./plain.ts";

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
   * may be empty and `next` still be given: a read looks at a bounded number of events. Long ones make a page shorter
   * than its limit.
   */
  next: string | null;
  /** True when events after the cursor are no longer kept: the reader was away for too long. */
  gap: boolean;
}

export interface EventLog {
  /**
   * Adds the event to the change; webhooks read the log by cursor, so the hot commit carries one row an event. Call
   * `committed` with the event's account after the commit succeeded, so that webhooks and live streams look at once
   * instead of at their next sweep. The result has the event's id once the commit has succeeded.
   */
  append(change: Change, event: NewEvent): { readonly id: string | null };
  committed(accountId: string): void;
  /** Events after the cursor, oldest first. Throws Problem validation_failed for a cursor that is no event id. */
  read(accountId: string, query: EventQuery): Promise<EventPage>;
  /** The newest events that fit, newest first; looks at a bounded number of events. */
  recent(accountId: string, query: Omit<EventQuery, "after">): Promise<LoggedEvent[]>;
  /** Id of the newest event; null when there is none. */
  newest(accountId: string): Promise<string | null>;
  /** Calls `wake` after each commit that appended for the account; returns the unsubscribe function. */
  subscribe(accountId: string, wake: () => void): () => void;
}

/** Rows that one read looks at: a filter that fits nothing must not read a whole log in one request. */
const SCAN_LIMIT = 2_000;
/** What the events of one read may take in memory; the first is always among them. `next` leads to the rest. */
const PAGE_BYTES = 8 * 1024 ** 2;
const ID_PREFIX = "evt_";
const ID = new RegExp(`^${EVENT_ID}$`);

/** The id under which clients know the event at this place of the log. */
export function eventId(order: string): string {
  return ID_PREFIX + order;
}

/** The place in the log that an event id names. Throws Problem validation_failed at `path` when it is no event id. */
export function orderOf(id: string, path = "after"): string {
  if (!ID.test(id)) throw invalid(path, "is not the id of an event");
  return id.slice(ID_PREFIX.length);
}

export function makeEventLog(kv: Kv, runtime: Runtime): EventLog {
  const listeners = new Map<string, Set<() => void>>();
  return {
    append(change, event) {
      const createdAt = runtime.clock.now();
      const { accountId, sessionId } = event;
      const sessionName = plain(event.sessionName);
      const body = { event: event.event, data: plain(event.data) } as typeof event;
      const appended: { id: string | null } = { id: null };
      change.ordered(eventKeys.eventOrder(accountId), (order) => {
        const id = eventId(order);
        appended.id = id;
        const logged: LoggedEvent = { ...body, id, accountId, sessionId, sessionName, createdAt };
        return [{ kind: "set", key: eventKeys.event(accountId, order), value: logged }];
      });
      change.add(eventKeys.eventCount(accountId), 1);
      return appended;
    },

    committed(accountId) {
      for (const wake of listeners.get(accountId) ?? []) wake();
    },

    async read(accountId, query) {
      const after = query.after === null ? null : orderOf(query.after);
      const floor = after === null ? null : (await kv.get(eventKeys.eventFloor(accountId))).value;
      const page = await scan(kv, { accountId, after, query });
      return { ...page, gap: after !== null && floor !== null && after < floor };
    },

    async recent(accountId, query) {
      const found: LoggedEvent[] = [];
      const rows = kv.list({ prefix: eventKeys.events(accountId) }, { limit: SCAN_LIMIT, reverse: true });
      for await (const { value } of rows) if (fits(value, query) && found.push(value) === query.limit) break;
      return found;
    },

    async newest(accountId) {
      for await (const { value } of kv.list({ prefix: eventKeys.events(accountId) }, { limit: 1, reverse: true })) {
        return value.id;
      }
      return null;
    },

    subscribe(accountId, wake) {
      const wakes = listeners.get(accountId) ?? new Set();
      listeners.set(accountId, wakes);
      wakes.add(wake);
      return () => {
        wakes.delete(wake);
        if (wakes.size === 0 && listeners.get(accountId) === wakes) listeners.delete(accountId);
      };
    },
  };
}

/** The rows after `after` (excluded), oldest first. */
export function eventsAfter(
  kv: Kv,
  accountId: string,
  { after, limit }: { after: string | null; limit: number },
): AsyncIterable<Row<LoggedEvent>> {
  const prefix = eventKeys.events(accountId);
  // The start of a range is included; no order has another as its beginning, so one more character is just past it.
  return kv.list({ prefix, ...(after === null ? {} : { start: [...prefix, after + "\0"] }) }, { limit });
}

async function scan(
  kv: Kv,
  { accountId, after, query }: { accountId: string; after: string | null; query: EventQuery },
): Promise<Omit<EventPage, "gap">> {
  const { limit } = query;
  const events: LoggedEvent[] = [];
  let next: string | null = null;
  let bytes = 0;
  for await (const row of eventsAfter(kv, accountId, { after, limit: SCAN_LIMIT })) {
    if (fits(row.value, query)) {
      bytes += sizeBound(row.value.data);
      if (events.length > 0 && bytes > PAGE_BYTES) break;
      events.push(row.value);
    }
    next = row.value.id;
    if (events.length === limit) break;
  }
  return { events, next };
}

function fits(event: LoggedEvent, { types, sessionId }: Pick<EventQuery, "types" | "sessionId">): boolean {
  return (types ?? USUAL_EVENTS).includes(event.event) && (sessionId === null || sessionId === event.sessionId);
}
