/** Webhooks on a store that many processes share: each has a lease, and whoever holds it works for it (promise 9). */
import { Leases } from "../cluster/leases.ts";
import { callMembers } from "../cluster/member.ts";
import { clusterKeys } from "../cluster/rows.ts";
import type { Bell } from "../store/bell.ts";
import type { KeyOf, Kv } from "../store/kv.ts";
import type { WebhookOwner, WebhookOwnership } from "./dispatcher.ts";
import { CHANGED_TOPIC, WEBHOOK_TOPIC, webhookKeys } from "./rows.ts";
import type { WebhookRow } from "./webhook.ts";

export const WEBHOOK_KIND = "webhook";

/** Returns the name of a webhook's lease. */
const thingOf = ({ accountId, id }: Pick<WebhookRow, "accountId" | "id">) => `${accountId}/${id}`;

function keyOfThing(thing: string): KeyOf<WebhookRow> {
  const [accountId = "", id = ""] = thing.split("/");
  return webhookKeys.webhook(accountId, id);
}

/** Returns the ownership of the webhooks whose leases this process holds. */
export function sharedWebhooks(leases: Leases): WebhookOwnership {
  return {
    rows: () => leases.rows(keyOfThing),
    storeOf: (webhook) => leases.storeOf(thingOf(webhook)),
  };
}

/** Lists the lease names of all webhooks. */
export async function* webhookThings(kv: Kv): AsyncIterable<string> {
  for await (const { value } of kv.list({ prefix: webhookKeys.webhooks() })) yield thingOf(value);
}

/** Returns the owner of webhooks held by other processes. The bell notifies it; sweeps make up for lost rings. */
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
      // A new webhook has no holder yet.
      callMembers(bell);
    },
    removed(webhookId) {
      bell.ring(CHANGED_TOPIC + webhookId);
      return Promise.resolve();
    },
    wake: (webhookId) => bell.ring(WEBHOOK_TOPIC + webhookId),
  };
}
