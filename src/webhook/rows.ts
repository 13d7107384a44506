/** The rows of webhooks (records, progress, deliveries), and the topics of the bell that tell of changes to them. */
import type { Kind } from "../cluster/holder.ts";
import type { Delivery, WebhookProgress, WebhookRow } from "./webhook.ts";
import { key, prefix } from "../store/kv.ts";

export const webhookKeys = {
  webhook: (accountId: string, webhookId: string) => key<WebhookRow>("webhook", accountId, webhookId),
  webhooksOfAccount: (accountId: string) => prefix<WebhookRow>("webhook", accountId),
  webhooks: () => prefix<WebhookRow>("webhook"),
  /** How many webhooks the account has ever created; checked by every creation, so that the limit holds. */
  webhooksMade: (accountId: string) => key<number>("webhooks_made", accountId),
  /** The webhook's progress in its account's event log; written only by its worker. */
  webhookProgress: (webhookId: string) => key<WebhookProgress>("webhook_progress", webhookId),
  allWebhookProgress: () => prefix<WebhookProgress>("webhook_progress"),
  /** The delivery of an event, by the event's order; exists once the first attempt has ended. */
  delivery: (webhookId: string, order: string) => key<Delivery>("delivery", webhookId, order),
  allDeliveries: () => prefix<Delivery>("delivery"),
  deliveries: (webhookId: string) => prefix<Delivery>("delivery", webhookId),
  /** A scheduled attempt, by the time it is due (Unix ms); the value is its number in its series, from 1. */
  dueAttempt: (webhookId: string, dueAt: number, order: string) => key<number>("due_attempt", webhookId, dueAt, order),
  dueAttempts: (webhookId: string) => prefix<number>("due_attempt", webhookId),
  allDueAttempts: () => prefix<number>("due_attempt"),
};

export const WEBHOOK: Kind<WebhookRow> = {
  name: "webhook",
  rows: webhookKeys.webhooks(),
  nameOf: ({ accountId, id }) => `${accountId}/${id}`,
  keyOf(name) {
    const [accountId = "", id = ""] = name.split("/");
    return webhookKeys.webhook(accountId, id);
  },
};

/** Rings when a webhook may have work. Topics end in the webhook's id. */
export const WEBHOOK_TOPIC = "webhook/";
/** Rings when a webhook was created, changed or removed by a process that does not own it. */
export const CHANGED_TOPIC = "webhook-changed/";
