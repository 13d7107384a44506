/** The rows of the event log. */
import type { LoggedEvent } from "./event.ts";
import { key, prefix } from "../store/kv.ts";

export const eventKeys = {
  /** The highest place in the account's order of events. */
  eventOrder: (accountId: string) => key<number>("event_order", accountId),
  /** An event at its place in the account's order; its id is `evt_` and the order. */
  event: (accountId: string, order: string) => key<LoggedEvent>("event", accountId, order),
  events: (accountId: string) => prefix<LoggedEvent>("event", accountId),
  /** An event that is a message in one of the line's chats, found without those of all else that happened. */
  chatEvent: (accountId: string, sessionId: string, order: string) =>
    key<true>("chat_event", accountId, sessionId, order),
  chatEvents: (accountId: string, sessionId: string) => prefix<true>("chat_event", accountId, sessionId),
  chatEventsOfAccount: (accountId: string) => prefix<true>("chat_event", accountId),
  /** How many events of the account are kept. */
  eventCount: (accountId: string) => key<bigint>("event_count", accountId),
  eventCounts: () => prefix<bigint>("event_count"),
  /** Order of the newest event that was removed: a cursor before it has missed something. */
  eventFloor: (accountId: string) => key<string>("event_floor", accountId),
};
