/** What a webhook and its deliveries are, and which events go to it. */
import type { EventName, LoggedEvent } from "../event/event.ts";
import { orderOf } from "../event/log.ts";
import type { Seal } from "../store/seal.ts";

export interface Webhook {
  id: string;
  accountId: string;
  url: string;
  events: readonly EventName[];
  /** Null: every session of the account. */
  sessionId: string | null;
  /** False pauses: events wait in the event log and go out, in order, when it is true again. */
  active: boolean;
  /** Why the gateway itself switched it off, and how to switch it on; null otherwise. */
  switchedOff: string | null;
  /** Until when the previous secret also signs, Unix ms; null when there is only one. */
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
  /** HTTP status; null when no response came. */
  status: number | null;
  durationMs: number;
  /** One sentence; null when it was a success. */
  error: string | null;
}

/** One event on its way to one webhook. `pending`: another attempt is due. */
export interface Delivery {
  id: string;
  eventId: string;
  event: EventName;
  status: DeliveryStatus;
  attempts: DeliveryAttempt[];
  createdAt: number;
  /** When the next attempt is due, Unix ms; null when there is none. */
  nextAttemptAt: number | null;
}

/** A webhook with its secrets, sealed (promise 6). */
export interface WebhookRow extends Webhook {
  secret: Uint8Array;
  /** Signs too until `previousSecretUntil`; null when there is only one. */
  previousSecret: Uint8Array | null;
}

/** A worker's notes, in a row of their own, so that an owner's update and a worker's progress never collide. */
export interface WebhookProgress {
  /** Every event up to this order has had its first attempt, or was not for this webhook. */
  cursor: string;
  /** The cursor at creation: events up to it happened before. */
  origin: string;
  /** Deliveries that ended as failed since the last success. */
  failedInARow: number;
  /** When the first of them ended, Unix ms. */
  failingSince: number | null;
  /** When `webhook.failing` was last logged, Unix ms. */
  announcedAt: number | null;
}

/** As its owner sees it. */
export interface ShownWebhook extends Webhook {
  /** Since when deliveries that ended have failed, Unix ms; null when the last one was a success, or none has ended. */
  failingSince: number | null;
}

/** The row without what must not leave the gateway. */
export function shownWebhook(
  row: WebhookRow,
  { failingSince, now }: Pick<ShownWebhook, "failingSince"> & { now: number },
): ShownWebhook {
  const { secret: _, previousSecret: __, ...webhook } = row;
  const rotating = webhook.previousSecretUntil !== null && now < webhook.previousSecretUntil;
  return { ...webhook, previousSecretUntil: rotating ? webhook.previousSecretUntil : null, failingSince };
}

/** When a change made now counts as made, Unix ms: after the one before it, whatever the clocks of several processes say. */
export function changedAt({ updatedAt }: WebhookRow, now: number): number {
  return Math.max(now, updatedAt + 1);
}

/** The secrets that sign now, the newest first. */
export function liveSecrets(row: WebhookRow, { seal, now }: { seal: Seal; now: number }): string[] {
  const sealed = [row.secret];
  if (row.previousSecret && row.previousSecretUntil !== null && now < row.previousSecretUntil) {
    sealed.push(row.previousSecret);
  }
  return sealed.map((secret) => new TextDecoder().decode(seal.open(secret)));
}

const OWN_TROUBLE: readonly EventName[] = ["webhook.failing", "webhook.disabled"];

/** Whether the event goes to the webhook. */
export function wants(webhook: Webhook, event: LoggedEvent): boolean {
  if (event.event === "webhook.test") return event.data.webhookId === webhook.id;
  // An endpoint is not sent the news of its own failure.
  if (OWN_TROUBLE.includes(event.event) && "webhookId" in event.data && event.data.webhookId === webhook.id) {
    return false;
  }
  if (webhook.sessionId !== null && webhook.sessionId !== event.sessionId) return false;
  return webhook.events.includes(event.event);
}

/** The delivery of an event of which no attempt has ended yet. */
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

/** How much of the webhook's id a delivery's id carries. */
const TAIL = 10;

/** A delivery's id is made of its event's place in the log and its webhook: nothing to generate or look up. */
export function deliveryId(webhookId: string, order: string): string {
  return `dlv_${order}${webhookId.slice(-TAIL)}`;
}

/** The event's place in the log; null when the id is not one of this webhook's deliveries. */
export function orderOfDelivery(webhookId: string, id: string): string | null {
  const order = id.slice("dlv_".length, -TAIL);
  return /^[0-9a-z]{1,64}$/.test(order) && id === deliveryId(webhookId, order) ? order : null;
}
