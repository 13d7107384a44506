/**
 * Decides which process works for a webhook and through which store it writes (promise 9). On one machine it is the
 * only process; on a shared store each webhook has a lease.
 */
import type { Change, Kv } from "../store/kv.ts";
import { webhookKeys } from "./rows.ts";
import type { WebhookRow } from "./webhook.ts";

export interface WebhookOwnership {
  /** Lists the rows of the webhooks owned by this process. */
  rows(): AsyncIterable<WebhookRow>;
  /** Returns the store through which the webhook's owner writes; null if this process does not own it. */
  storeOf(webhook: Pick<WebhookRow, "accountId" | "id">): Kv | null;
}

/** How HTTP notifies the owner of a webhook, in this process or another. */
export interface WebhookOwner {
  /** Adds to the commit that creates a webhook what lets a process take it. */
  offer(change: Change, webhook: Pick<WebhookRow, "accountId" | "id">): void;
  /** Adds to the commit that removes a webhook what makes all later writes for it fail. */
  withdraw(change: Change, webhook: Pick<WebhookRow, "accountId" | "id">): Promise<void>;
  /** Called when the webhook was created or changed. */
  changed(webhook: WebhookRow): void;
  /** Called when the webhook was removed; resolves when nothing is written for it any longer. */
  removed(webhookId: string): Promise<void>;
  /** Called when an attempt is due that the webhook's worker does not know of. */
  wake(webhookId: string): void;
}

/** Returns the ownership of a process that owns every webhook. */
export function soleWebhooks(kv: Kv): WebhookOwnership {
  return {
    async *rows() {
      for await (const { value: { accountId, id } } of kv.list({ prefix: webhookKeys.webhooks() })) {
        // Read again: it may have been removed, with its worker, since the rows were listed.
        const { value } = await kv.get(webhookKeys.webhook(accountId, id));
        if (value) yield value;
      }
    },
    storeOf: () => kv,
  };
}

/** Topics end in the webhook's id. */
export const WEBHOOK_TOPIC = "webhook/";
export const CHANGED_TOPIC = "webhook-changed/";
