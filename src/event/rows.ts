/** The rows of the event log. */
import type { LoggedEvent } from "./event.ts";
import { key, prefix } from "../store/kv.ts";

export const eventKeys = {
  /** The last place given out in the account's order of events. */
  eventOrder: (accountId: string) => key<number>("event_order", accountId),
  /** An event at its place in the account's order; its id is `evt_` followed by the order. */
  event: (accountId: string, order: string) => key<LoggedEvent>("event", accountId, order),
  events: (accountId: string) => prefix<LoggedEvent>("event", accountId),
  /** Index that older versions kept of the events that are messages; its rows go with their events. */
  chatEvent: (accountId: string, sessionId: string, order: string) =>
    key<true>("chat_event", accountId, sessionId, order),
  chatEventsOfAccount: (accountId: string) => prefix<true>("chat_event", accountId),
  /** Number of events of the account, which older versions kept. */
  eventCount: (accountId: string) => key<bigint>("event_count", accountId),
  eventCounts: () => prefix<bigint>("event_count"),
  /** Bytes of the account's events, with what is kept beside them. */
  eventBytes: (accountId: string) => key<bigint>("event_bytes", accountId),
  allEventBytes: () => prefix<bigint>("event_bytes"),
  /** Order of the newest event removed: a reader with an earlier cursor has missed events. */
  eventFloor: (accountId: string) => key<string>("event_floor", accountId),
};
