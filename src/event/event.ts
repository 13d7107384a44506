/** The events of the specification, those beyond it, and the record that the log keeps of each. */
import type { z } from "zod";
import type { EVENT_SCHEMAS } from "./schema.ts";

/** Pattern of an event's id. Another text is no cursor: it might lie behind every event to come. */
export const EVENT_ID = "evt_[0-9]{10,20}";

export const EVENT_NAMES = [
  "message.sent",
  "message.status",
  "message.failed",
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

/** What nobody gets who does not ask for it by its name: it comes often, and is over soon. */
const BY_NAME: ReadonlySet<EventName> = new Set(["presence.updated"]);

/** What a subscription to all events is to. */
export const USUAL_EVENTS: readonly EventName[] = EVENT_NAMES.filter((name) => !BY_NAME.has(name));

/** The data of an event by its name, as the reference has it. */
export type EventData<Name extends EventName> = z.infer<(typeof EVENT_SCHEMAS)[Name]["data"]>;

/** An event's name with its data. */
export type EventBody = { [Name in EventName]: { event: Name; data: EventData<Name> } }[EventName];

/** What a part of the product hands to the log. */
export type NewEvent = EventBody & { accountId: string; sessionId: string; sessionName: string };

/** An event as kept: `id` never changes and sorts in the order of commits. */
export type LoggedEvent = NewEvent & { id: string; createdAt: number };

/** A message in a chat of the line that the gateway did not send. */
export type ChatEvent = Extract<LoggedEvent, { event: "message.received" | "message.echo" }>;

export function isChatEvent(event: LoggedEvent): event is ChatEvent {
  return event.event === "message.received" || event.event === "message.echo";
}
