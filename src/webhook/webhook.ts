/** Webhooks and deliveries, and which events go to a webhook. */
import type { EventName, LoggedEvent } from "../event/event.ts";
import { orderOf } from "../event/event_log.ts";
import type { Seal } from "../store/seal.ts";
import { isGroup } from "../whatsapp/chats.ts";
import { type FormatName, tells } from "./format.ts";

/** Whose events a webhook gets: of all chats, of 1:1 chats, or of groups. */
export const CHATS = ["all", "direct", "groups"] as const;

export interface Webhook {
  id: string;
  accountId: string;
  url: string;
  /** Absent means "paloma". */
  format?: FormatName;
  events: readonly EventName[];
  /** Null: every session of the account. */
  sessionId: string | null;
  /** Absent means "all"; events without a chat go to every webhook. */
  chats?: (typeof CHATS)[number];
  /** Names of the headers that requests carry beside the gateway's own, in lower case; absent for none. */
  headerNames?: readonly string[];
  /** False pauses delivery: events wait in the event log and are delivered in order once it is true again. */
  active: boolean;
  /** Why the gateway switched it off, and how to switch it on again; null otherwise. */
  switchedOff: string | null;
  /** Until when the previous secret also signs, Unix ms; null if there is only one. */
  previousSecretUntil: number | null;
  createdAt: number;
  updatedAt: number;
}

export const DELIVERY_STATUSES = ["pending", "delivered", "failed"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** One request to the target. */
export interface DeliveryAttempt {
  /** When it began, Unix ms. */
  at: number;
  /** HTTP status; null if no response came. */
  status: number | null;
  durationMs: number;
  /** One sentence; null if it succeeded. */
  error: string | null;
}

/** The delivery of one event to one webhook. `pending`: another attempt is due. */
export interface Delivery {
  id: string;
  eventId: string;
  event: EventName;
  status: DeliveryStatus;
  attempts: DeliveryAttempt[];
  createdAt: number;
  /** When the next attempt is due, Unix ms; null if there is none. */
  nextAttemptAt: number | null;
}

/** A webhook with its secrets, sealed (promise 6). */
export interface WebhookRow extends Webhook {
  secret: Uint8Array;
  /** Also signs until `previousSecretUntil`; null if there is only one secret. */
  previousSecret: Uint8Array | null;
  /** The headers with their values, as JSON; absent for none. */
  headers?: Uint8Array;
  /** By which the target proves in the handshake of its format that it expects requests; absent for none. */
  verifyToken?: Uint8Array;
}

/** What a request to the target carries, unsealed. */
export interface Opened {
  /** The secrets that sign, newest first. */
  secrets: readonly string[];
  headers: Readonly<Record<string, string>>;
}

/** A worker's progress, in a row of its own, so that it never conflicts with the owner's changes. */
export interface WebhookProgress {
  /** All events up to this order have had their first attempt or were not for this webhook. */
  cursor: string;
  /** The cursor at creation; events up to it are older than the webhook. */
  origin: string;
  /** Failed deliveries since the last success. */
  failedInARow: number;
  /** When the first of them failed, Unix ms. */
  failingSince: number | null;
  /** When `webhook.failing` was last logged, Unix ms. */
  announcedAt: number | null;
}

/** A webhook as shown to its owner. */
export interface ShownWebhook extends Webhook {
  /** Since when deliveries have been failing, Unix ms; null if the last one succeeded or none has ended. */
  failingSince: number | null;
}

/** Returns the row without its secrets. */
export function shownWebhook(
  row: WebhookRow,
  { failingSince, now }: Pick<ShownWebhook, "failingSince"> & { now: number },
): ShownWebhook {
  const { secret: _, previousSecret: __, headers: ___, verifyToken: ____, ...webhook } = row;
  const rotating = webhook.previousSecretUntil !== null && now < webhook.previousSecretUntil;
  return { ...webhook, previousSecretUntil: rotating ? webhook.previousSecretUntil : null, failingSince };
}

/**
 * Returns the timestamp of a change made now, Unix ms: later than the previous change, even if processes' clocks
 * differ.
 */
export function changedAt({ updatedAt }: WebhookRow, now: number): number {
  return Math.max(now, updatedAt + 1);
}

/** Returns what a request made now carries. Throws SealError. */
export function opened(row: WebhookRow, { seal, now }: { seal: Seal; now: number }): Opened {
  const sealed = [row.secret];
  if (row.previousSecret && row.previousSecretUntil !== null && now < row.previousSecretUntil) {
    sealed.push(row.previousSecret);
  }
  const open = (value: Uint8Array) => new TextDecoder().decode(seal.open(value));
  return { secrets: sealed.map(open), headers: row.headers ? JSON.parse(open(row.headers)) : {} };
}

const OWN_TROUBLE: readonly EventName[] = ["webhook.failing", "webhook.disabled"];

/** Whether the event goes to the webhook. */
export function wants(webhook: Webhook, event: LoggedEvent): boolean {
  if (event.event === "webhook.test") return event.data.webhookId === webhook.id;
  // A failing endpoint is not sent reports about itself.
  if (OWN_TROUBLE.includes(event.event) && "webhookId" in event.data && event.data.webhookId === webhook.id) {
    return false;
  }
  if (!tells(webhook.format ?? "paloma", event)) return false;
  if (webhook.sessionId !== null && webhook.sessionId !== event.sessionId) return false;
  const { chats = "all" } = webhook;
  const chat = chats === "all" ? null : chatKindOf(event);
  return (chat === null || chat === chats) && webhook.events.includes(event.event);
}

/** Returns the kind of chat that the event is about; null if it is about none, as a status post. */
function chatKindOf({ event, data }: LoggedEvent): "direct" | "groups" | null {
  if (event === "group.updated" || event === "group.participants") return "groups";
  // Only receipts of groups name a person.
  if (event === "message.status") return data.participant === null ? "direct" : "groups";
  if (event === "recipient.opted_out") return "direct";
  const chat = "chat" in data ? data.chat : "to" in data ? data.to : null;
  if (typeof chat !== "string" || chat.endsWith("@broadcast")) return null;
  return isGroup(chat) ? "groups" : "direct";
}

/** Returns a new delivery, without attempts. */
export function newDelivery(webhookId: string, { id, event }: LoggedEvent, now: number): Delivery {
  return {
    id: deliveryId(webhookId, orderOf(id)),
    eventId: id,
    event,
    status: "pending",
    attempts: [],
    createdAt: now,
    nextAttemptAt: null,
  };
}

/** How many characters of the webhook's id are part of a delivery's id. */
const TAIL = 10;

/** Returns a delivery's id, derived from its event's place in the log and its webhook. */
export function deliveryId(webhookId: string, order: string): string {
  return `dlv_${order}${webhookId.slice(-TAIL)}`;
}

/** Returns the event's place in the log; null if the id is not that of a delivery of this webhook. */
export function orderOfDelivery(webhookId: string, id: string): string | null {
  const order = id.slice("dlv_".length, -TAIL);
  return /^[0-9a-z]{1,64}$/.test(order) && id === deliveryId(webhookId, order) ? order : null;
}
