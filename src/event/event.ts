/** The events of the specification and those beyond it, and how the log stores them. */
import type { z } from "zod";
import type { EVENT_SCHEMAS } from "./schema.ts";

/**
 * Pattern of an event id. Any other text must be refused as a cursor, because it might sort after all future events.
 */
export const EVENT_ID = "evt_[0-9]{10,20}";

export const EVENT_NAMES = [
  "message.sent",
  "message.status",
  "message.failed",
  "message.proposed",
  "message.received",
  "session.connected",
  "session.disconnected",
  "session.qr",
  "session.passkey",
  "session.restricted",
  "session.degraded",
  "message.echo",
  "message.edited",
  "message.deleted",
  "poll.vote",
  "choice.made",
  "verification.passed",
  "verification.failed",
  "bulk.finished",
  "recipient.opted_out",
  "call.received",
  "presence.updated",
  "group.updated",
  "group.participants",
  "webhook.failing",
  "webhook.disabled",
  "webhook.test",
] as const;
export type EventName = (typeof EVENT_NAMES)[number];

/** Events that must be subscribed to by name, because they are frequent and soon obsolete. */
const BY_NAME: ReadonlySet<EventName> = new Set(["presence.updated"]);

/** The events covered by a subscription to all events. */
export const USUAL_EVENTS: readonly EventName[] = EVENT_NAMES.filter((name) => !BY_NAME.has(name));

/** The data of an event by its name, as in the API reference. */
export type EventData<Name extends EventName> = z.infer<(typeof EVENT_SCHEMAS)[Name]["data"]>;

/** An event's name with its data. */
export type EventBody = { [Name in EventName]: { event: Name; data: EventData<Name> } }[EventName];

/** An event to be logged. */
export type NewEvent = EventBody & { accountId: string; sessionId: string; sessionName: string };

/**
 * A logged event: `id` never changes and sorts in the order of commits. `bytes`: what it takes in the store at most,
 * with what is kept beside it; absent in events of older versions.
 */
export type LoggedEvent = NewEvent & { id: string; createdAt: number; bytes?: number };

/** A message in one of the line's chats that the gateway did not send. */
export type ChatEvent = Extract<LoggedEvent, { event: "message.received" | "message.echo" }>;

export function isChatEvent(event: LoggedEvent): event is ChatEvent {
  return event.event === "message.received" || event.event === "message.echo";
}
