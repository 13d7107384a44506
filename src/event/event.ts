/** The events of the specification, three beyond it, and the record that the log keeps of each. */
import type { IncomingType } from "../whatsapp/connection.ts";

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
  "message.echo",
  "webhook.failing",
  "webhook.test",
] as const;
export type EventName = (typeof EVENT_NAMES)[number];

export interface MessageSentData {
  messageId: string;
  networkId: string;
  jobId: string;
  to: string;
  sentAt: string;
}

export interface MessageStatusData {
  messageId: string;
  networkId: string;
  status: "delivered" | "read";
  /** JID of the participant in a group; null in a 1:1 chat. */
  participant: string | null;
  at: string;
}

export interface MessageFailedData {
  messageId: string;
  networkId: string;
  jobId: string;
  to: string;
  error: { code: string; message: string };
}

export interface ReceivedMedia {
  /** Null when the file could not be had; `reason` then says why. */
  url: string | null;
  mimetype: string;
  size: number;
  filename: string;
  reason?: string;
}

export interface MessageReceivedData {
  from: string;
  number: string | null;
  pushName: string | null;
  messageId: string;
  timestamp: number;
  type: IncomingType;
  text: string | null;
  /** Present only when the message carries a file. */
  media?: ReceivedMedia;
  /** Beyond the specification: sender inside a group, and content of the type that has no field. */
  participant?: string;
  details?: Record<string, unknown>;
}

/**
 * Beyond the specification: what the line's owner wrote on the phone or another device. An event of its own: a client
 * that answers every `message.received` must not answer the owner's words.
 */
export interface MessageEchoData extends MessageReceivedData {
  fromMe: true;
}

export interface SessionConnectedData {
  phone: string;
}

export interface SessionDisconnectedData {
  status: "disconnected" | "logged_out";
  reason: string;
}

export interface SessionQrData {
  /** Data URL of the PNG. */
  qr: string;
}

/** Beyond the specification: the account asks for its passkey while it is linked. */
export interface SessionPasskeyData {
  stage: "required" | "confirm";
  expiresAt: string;
}

/** Beyond the specification: the deliveries of a webhook keep failing, or its target asked to be left alone (410). */
export interface WebhookFailingData {
  webhookId: string;
  url: string;
  /** False when the gateway switched it off. */
  active: boolean;
  /** Deliveries that ended as failed since the last success. */
  failedInARow: number;
  lastError: string;
  /** When the first of them ended. */
  since: string;
}

/** Beyond the specification: sent to one webhook alone, when its owner asks for it. */
export interface WebhookTestData {
  webhookId: string;
  at: string;
}

/** Each event's name with its data. */
export type EventBody =
  | { event: "message.sent"; data: MessageSentData }
  | { event: "message.status"; data: MessageStatusData }
  | { event: "message.failed"; data: MessageFailedData }
  | { event: "message.received"; data: MessageReceivedData }
  | { event: "session.connected"; data: SessionConnectedData }
  | { event: "session.disconnected"; data: SessionDisconnectedData }
  | { event: "session.qr"; data: SessionQrData }
  | { event: "session.passkey"; data: SessionPasskeyData }
  | { event: "message.echo"; data: MessageEchoData }
  | { event: "webhook.failing"; data: WebhookFailingData }
  | { event: "webhook.test"; data: WebhookTestData };

/** What a part of the product hands to the log. */
export type NewEvent = EventBody & { accountId: string; sessionId: string; sessionName: string };

/** An event as kept: `id` never changes and sorts in the order of commits. */
export type LoggedEvent = NewEvent & { id: string; createdAt: number };
