/** The events of the specification, those beyond it, and the record that the log keeps of each. */
import type { Group, GroupSettings } from "../whatsapp/groups.ts";
import type { MembersChange, PresenceState } from "../whatsapp/notices.ts";
import type { IncomingType, Quoted } from "../whatsapp/incoming.ts";

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

export interface ReceivedMedia {
  /** Null when the file could not be had; `reason` then says why. */
  url: string | null;
  mimetype: string;
  size: number;
  filename: string;
  reason?: string;
}

interface MessageReceivedData {
  from: string;
  number: string | null;
  pushName: string | null;
  messageId: string;
  timestamp: number;
  type: IncomingType;
  text: string | null;
  /** Present only when the message carries a file. */
  media?: ReceivedMedia;
  /** Beyond the specification: the chat, as in `from`, under the name that every other event has for it. */
  chat: string;
  /** The sender inside a group. */
  participant?: string;
  /** The message that it answers. */
  quoted?: Quoted;
  /** JIDs of those whom it mentions, where it mentions somebody. */
  mentions?: readonly string[];
  isForwarded: boolean;
  /** Present only where it is to be seen once. */
  viewOnce?: true;
  /** Where the chat came from, as far as the network tells. */
  ad?: Record<string, string>;
  /** Content of the type that has no field. */
  details?: Record<string, unknown>;
}

/** A group as it is after the change; only its id where the network does not tell the line any more. */
type GroupData = { id: string; createdAt?: string } & Partial<Omit<Group, "createdAt"> & GroupSettings>;

/** The data of each event, by its name. */
interface DataByName {
  "message.sent": { messageId: string; networkId: string; jobId: string; to: string; sentAt: string };
  "message.status": {
    messageId: string;
    networkId: string;
    status: "delivered" | "read";
    /** JID of the participant in a group; null in a 1:1 chat. */
    participant: string | null;
    at: string;
  };
  "message.failed": {
    messageId: string;
    networkId: string;
    jobId: string;
    to: string;
    error: { code: string; message: string };
  };
  "message.received": MessageReceivedData;
  "session.connected": { phone: string };
  "session.disconnected": { status: "disconnected" | "logged_out"; reason: string };
  "session.qr": {
    /** Data URL of the PNG. */
    qr: string;
  };
  /** Beyond the specification: the account asks for its passkey while it is linked. */
  "session.passkey": { stage: "required" | "confirm"; expiresAt: string };
  /** Beyond the specification: the network lets the account start no new chats, or lets it again. */
  "session.restricted": {
    active: boolean;
    /** As the network names it. */
    kind: string;
    until: string | null;
  };
  /** The line is connected and yet hears nothing, or nothing that it can read; null: it does again. */
  "session.degraded": { reason: string | null };
  /**
   * Beyond the specification: what the line's owner wrote on the phone or another device. An event of its own: a client
   * that answers every `message.received` must not answer the owner's words.
   */
  "message.echo": MessageReceivedData & { fromMe: true };
  /** An earlier message says something else now. Not a `message.received`: a corrected order is no second order. */
  "message.edited": {
    /** The network's id of the message that was edited. */
    messageId: string;
    chat: string;
    /** Who did it, digits; null where the network never said. */
    number: string | null;
    text: string | null;
  };
  /** An earlier message was deleted for everyone. */
  "message.deleted": { messageId: string; chat: string; number: string | null };
  /** What somebody chooses in a poll, now; empty when the vote was taken back. */
  "poll.vote": {
    /** The gateway's id of the poll; null for one that the gateway did not send. */
    messageId: string | null;
    /** The network's. */
    networkId: string;
    chat: string;
    number: string | null;
    options: readonly string[];
  };
  /** Beyond the specification: every message of a bulk has ended. */
  "bulk.finished": {
    bulkId: string;
    total: number;
    sent: number;
    /** Cancelled ones too. */
    failed: number;
  };
  /** Somebody wrote one of the account's words, and is never written to again. */
  "recipient.opted_out": { number: string; word: string };
  "call.received": { callId: string; chat: string; number: string | null; video: boolean };
  /** What somebody in a chat does now. Emitted only to those who name the event. */
  "presence.updated": { chat: string; number: string | null; state: PresenceState };
  "group.updated": { group: GroupData };
  "group.participants": {
    group: GroupData;
    action: MembersChange;
    participants: readonly { id: string; number: string | null }[];
  };
  /** Beyond the specification: the deliveries of a webhook keep failing, or its target asked to be left alone (410). */
  "webhook.failing": {
    webhookId: string;
    url: string;
    /** False when the gateway switched it off. */
    active: boolean;
    /** Deliveries that ended as failed since the last success. */
    failedInARow: number;
    lastError: string;
    /** When the first of them ended. */
    since: string;
  };
  /** Beyond the specification: the gateway switched a webhook off. */
  "webhook.disabled": {
    webhookId: string;
    /** Since when nothing was delivered. */
    since: string;
    /** Why, and how to switch it on. */
    reason: string;
  };
  /** Beyond the specification: sent to one webhook alone, when its owner asks for it. */
  "webhook.test": { webhookId: string; at: string };
}

/** The data of an event by its name. */
export type EventData<Name extends EventName> = DataByName[Name];

/** An event's name with its data. */
export type EventBody = { [Name in EventName]: { event: Name; data: DataByName[Name] } }[EventName];

/** What a part of the product hands to the log. */
export type NewEvent = EventBody & { accountId: string; sessionId: string; sessionName: string };

/** An event as kept: `id` never changes and sorts in the order of commits. */
export type LoggedEvent = NewEvent & { id: string; createdAt: number };

/** A message in a chat of the line that the gateway did not send. */
export type ChatEvent = Extract<LoggedEvent, { event: "message.received" | "message.echo" }>;

export function isChatEvent(event: LoggedEvent): event is ChatEvent {
  return event.event === "message.received" || event.event === "message.echo";
}
