/** Webhooks as the HTTP floor and the panel use them: records, secrets, the delivery log, redelivery. */
import type { EventName } from "../event/event.ts";
import type { Change } from "../store/kv.ts";

export interface Webhook {
  id: string;
  accountId: string;
  url: string;
  events: readonly EventName[];
  /** Null: every session of the account. */
  sessionId: string | null;
  /** False pauses: events wait in the event log and go out, in order, when it is true again. */
  active: boolean;
  /** Why the gateway itself switched it off (410 from the target), one sentence; null otherwise. */
  switchedOff: string | null;
  /** Until when the previous secret signs too, Unix ms; null when there is only one. */
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

/** One event on its way to one webhook. `pending`: the next attempt is waited for. */
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

export interface NewWebhook {
  url: string;
  /** Null: all. */
  events: readonly EventName[] | null;
  sessionId: string | null;
  /** Adds what is to be written with the webhook or not at all; called anew for each try. */
  beside?: (change: Change, made: MadeWebhook) => void;
}

/** A webhook and the secret that it has now, which is shown this once. */
export interface MadeWebhook {
  webhook: Webhook;
  secret: string;
}

export interface DeliveryQuery {
  status: DeliveryStatus | null;
  /** Id of the last delivery of the page before; null: from the newest. */
  before: string | null;
  limit: number;
}

/** Every method throws Problem not_found for an unknown webhook, also for another account's. */
export interface Webhooks {
  /** Oldest first. */
  list(accountId: string): Promise<Webhook[]>;
  get(accountId: string, webhookId: string): Promise<Webhook>;
  /** Throws Problem validation_failed for a target that may not be called, not_found for an unknown session. */
  create(accountId: string, options: NewWebhook): Promise<MadeWebhook>;
  /** Throws Problem validation_failed as `create` does. */
  update(
    accountId: string,
    webhookId: string,
    change: Partial<Pick<Webhook, "url" | "events" | "active">>,
  ): Promise<Webhook>;
  /** Also drops what waits for it and its delivery log. Resolves to the last record. */
  remove(accountId: string, webhookId: string): Promise<Webhook>;
  /** A new secret; the previous one goes on signing beside it until `previousSecretUntil`. */
  rotateSecret(accountId: string, webhookId: string): Promise<MadeWebhook>;
  /** Sends the event `webhook.test` to this webhook alone, whatever it subscribes to. Resolves to the event's id. */
  test(accountId: string, webhookId: string): Promise<{ eventId: string }>;
  /** Newest event first; `next` goes into `before` for the following page, null: there is none. */
  deliveries(
    accountId: string,
    webhookId: string,
    query: DeliveryQuery,
  ): Promise<{ deliveries: Delivery[]; next: string | null }>;
  /** One more series of attempts for one delivery, at once. Throws not_found also when the event is no longer kept. */
  redeliver(accountId: string, webhookId: string, deliveryId: string): Promise<Delivery>;
  /** The same for every event since the time (Unix ms) that the webhook subscribes to, delivered or not. */
  redeliverSince(accountId: string, webhookId: string, since: number): Promise<{ scheduled: number }>;
}
