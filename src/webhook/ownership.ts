/**
 * Which process works for a webhook, and through which store it writes (promise 9). On one machine it is the one there
 * is; on a store that many share, each webhook has a lease.
 */
import { callMembers } from "../cluster/member.ts";
import { Leases } from "../cluster/leases.ts";
import { clusterKeys } from "../cluster/rows.ts";
import type { Bell } from "../store/bell.ts";
import { Change, type KeyOf, type Kv } from "../store/kv.ts";
import { webhookKeys } from "./rows.ts";
import type { WebhookRow } from "./webhook.ts";

export interface WebhookOwnership {
  /** The webhooks of this process, as their rows stand. */
  rows(): AsyncIterable<WebhookRow>;
  /** The store as the webhook's owner writes it; null when it is not this process's. */
  storeOf(webhook: Pick<WebhookRow, "accountId" | "id">): Kv | null;
}

/** What HTTP says to whoever works for webhooks, in this process or another. */
export interface WebhookOwner {
  /** Adds what lets a webhook be taken up to the commit that creates it. */
  offer(change: Change, webhook: Pick<WebhookRow, "accountId" | "id">): void;
  /** Adds what ends all other writing for a webhook to the commit that removes it. */
  withdraw(change: Change, webhook: Pick<WebhookRow, "accountId" | "id">): Promise<void>;
  /** The webhook was created or changed. */
  changed(webhook: WebhookRow): void;
  /** The webhook was removed; resolves when nothing of it is written any more. */
  removed(webhookId: string): Promise<void>;
  /** Something is due for the webhook that its worker cannot know of. */
  wake(webhookId: string): void;
}

/** Where this process owns every webhook. */
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

export const WEBHOOK_KIND = "webhook";

/** Topics end in the webhook's id. */
export const WEBHOOK_TOPIC = "webhook/";
export const CHANGED_TOPIC = "webhook-changed/";

/** The name of a webhook's lease. */
const thingOf = ({ accountId, id }: Pick<WebhookRow, "accountId" | "id">) => `${accountId}/${id}`;

function keyOfThing(thing: string): KeyOf<WebhookRow> {
  const [accountId = "", id = ""] = thing.split("/");
  return webhookKeys.webhook(accountId, id);
}

/** The webhooks whose leases this process holds. */
export function sharedWebhooks(leases: Leases): WebhookOwnership {
  return {
    rows: () => leases.rows(keyOfThing),
    storeOf: (webhook) => leases.storeOf(thingOf(webhook)),
  };
}

/** The things of which each has a lease. */
export async function* webhookThings(kv: Kv): AsyncIterable<string> {
  for await (const { value } of kv.list({ prefix: webhookKeys.webhooks() })) yield thingOf(value);
}

/** Webhooks that another process works for: the bell wakes it, and a sweep finds what a lost ring left. */
export function makeRemoteWebhooks({ kv, bell }: { kv: Kv; bell: Bell }): WebhookOwner {
  return {
    offer: (change, webhook) => Leases.offer(change, WEBHOOK_KIND, thingOf(webhook)),
    // Once the lease is gone, the fence refuses whatever its holder still writes.
    async withdraw(change, webhook) {
      const lease = await kv.get(clusterKeys.lease(WEBHOOK_KIND, thingOf(webhook)));
      change.check(lease).delete(lease.key);
      if (lease.value) change.delete(clusterKeys.held(WEBHOOK_KIND, lease.value.holder, thingOf(webhook)));
    },
    changed({ id }) {
      bell.ring(CHANGED_TOPIC + id);
      // A new one is nobody's yet.
      callMembers(bell);
    },
    removed(webhookId) {
      bell.ring(CHANGED_TOPIC + webhookId);
      return Promise.resolve();
    },
    wake: (webhookId) => bell.ring(WEBHOOK_TOPIC + webhookId),
  };
}
