/** Webhooks on a store that many processes share: each has a lease, and whoever holds it works for it (promise 9). */
import { callMembers } from "../cluster/holder.ts";
import type { Bell } from "../store/bell.ts";
import type { WebhookOwner } from "./dispatcher.ts";
import { CHANGED_TOPIC } from "./rows.ts";

/** Returns the owner of webhooks held by other processes. The bell notifies it; sweeps make up for lost rings. */
export function makeRemoteWebhooks(bell: Pick<Bell, "ring">): WebhookOwner {
  return {
    changed({ id }) {
      bell.ring(CHANGED_TOPIC + id);
      // A new webhook has no holder yet.
      callMembers(bell);
    },
    removed(webhookId) {
      bell.ring(CHANGED_TOPIC + webhookId);
      return Promise.resolve();
    },
  };
}
