/** Retention of deliveries, and what becomes of them when their events are removed. */
import { inBatches } from "../base/batches.ts";
import type { LoggedEvent } from "../event/event.ts";
import { orderOf } from "../event/event_log.ts";
import type { Runtime } from "../runtime.ts";
import { webhookKeys } from "./rows.ts";
import { deleteKeys, deleteRange } from "../store/delete_range.ts";
import { Change, firstRow, type Key, type Kv, type PrefixOf, retryOnConflict, type Slot } from "../store/kv.ts";
import { type Delivery, newDelivery, wants, type WebhookProgress, type WebhookRow } from "./webhook.ts";

/** Failed deliveries are kept for 30 days; delivered ones are removed together with their event. */
const FAILED_KEEP_MS = 30 * 24 * 3_600_000;

/**
 * Settles the deliveries of events that are about to be removed (called by `sweepEvents`): successful deliveries are
 * removed, and events never delivered to an active webhook are recorded as failed. Paused webhooks miss them.
 */
export async function releaseEvents(
  { kv, runtime }: { kv: Kv; runtime: Pick<Runtime, "clock"> },
  accountId: string,
  events: readonly LoggedEvent[],
): Promise<void> {
  for await (const { value: webhook } of kv.list({ prefix: webhookKeys.webhooksOfAccount(accountId) })) {
    const { value: progress } = await kv.get(webhookKeys.webhookProgress(webhook.id));
    if (!progress) continue;
    // Each may be checked; a delivery with many attempts and long errors takes up to 6 KiB.
    for (const some of inBatches(events, kv.mostChecks)) {
      await retryOnConflict(kv, async () => {
        const slots = await kv.getMany(some.map((event) => webhookKeys.delivery(webhook.id, orderOf(event.id))));
        const change = new Change();
        some.forEach((event, i) => {
          release(change, { webhook, progress, event, slot: slots[i]!, now: runtime.clock.now() });
        });
        return { change, result: undefined };
      });
    }
  }
}

function release(
  change: Change,
  { webhook, progress, event, slot, now }: {
    webhook: WebhookRow;
    progress: WebhookProgress;
    event: LoggedEvent;
    slot: Slot<Delivery>;
    now: number;
  },
): void {
  const order = orderOf(event.id);
  const delivery = slot.value;
  if (delivery?.status === "failed") return;
  if (delivery?.status === "delivered") {
    change.delete(slot.key);
    return;
  }
  const owed = delivery !== null || (webhook.active && order > progress.cursor && wants(webhook, event));
  if (!owed) return;
  const waited = delivery?.nextAttemptAt ?? null;
  if (waited !== null) change.delete(webhookKeys.dueAttempt(webhook.id, waited, order));
  // Checked: an attempt may end in the meantime.
  change.check(slot).set(slot.key, givenUp(delivery ?? newDelivery(webhook.id, event, now), now));
}

/** Returns the delivery as failed because its event was removed before it could be delivered. */
export function givenUp(delivery: Delivery, now: number): Delivery {
  const given = { at: now, status: null, durationMs: 0, error: "given up: the event is no longer kept" };
  return { ...delivery, status: "failed", attempts: [...delivery.attempts, given], nextAttemptAt: null };
}

/** Removes old failed deliveries, and whatever a removed webhook left behind. Resolves to the number of deliveries. */
export async function sweepDeliveries(
  { kv, runtime }: { kv: Kv; runtime: Runtime },
  signal?: AbortSignal,
): Promise<number> {
  // Rows first, webhooks second: a webhook created in between must not look like a removed one.
  const webhookIds = new Set<string>();
  // A write concurrent with the removal may have left rows of any of these families.
  const families = [webhookKeys.allWebhookProgress(), webhookKeys.allDeliveries(), webhookKeys.allDueAttempts()];
  for (const prefix of families) for await (const id of webhooksBelow(kv, prefix)) webhookIds.add(id);
  const known = new Set<string>();
  for await (const { value } of kv.list({ prefix: webhookKeys.webhooks() })) known.add(value.id);
  const oldest = runtime.clock.now() - FAILED_KEEP_MS;
  let removed = 0;
  for (const webhookId of webhookIds) {
    if (!known.has(webhookId)) {
      await purgeWebhook(kv, webhookId);
      continue;
    }
    removed += await deleteKeys(kv, endedBefore(kv, webhookId, oldest), { signal });
  }
  return removed;
}

/** Yields the ids of webhooks that have rows of this family, with one read each. */
async function* webhooksBelow(kv: Kv, prefix: PrefixOf<unknown>): AsyncGenerator<string> {
  for (let row = await firstRow(kv, { prefix }); row !== null;) {
    const id = String(row.key[prefix.length]);
    yield id;
    row = await firstRow(kv, { prefix, start: [...prefix, `${id}\0`] });
  }
}

/** Yields old deliveries that have ended. Orders increase with time, so the first recent delivery ends it. */
async function* endedBefore(kv: Kv, webhookId: string, oldest: number): AsyncGenerator<Key> {
  for await (const { key, value } of kv.list({ prefix: webhookKeys.deliveries(webhookId) })) {
    if (value.createdAt >= oldest) return;
    if (value.status !== "pending") yield key;
  }
}

/** Removes everything kept for a webhook whose row is gone. If interrupted, the sweep removes the rest. */
export async function purgeWebhook(kv: Kv, webhookId: string): Promise<void> {
  for (const prefix of [webhookKeys.deliveries(webhookId), webhookKeys.dueAttempts(webhookId)]) {
    await deleteRange(kv, { prefix });
  }
  await kv.commit(new Change().delete(webhookKeys.webhookProgress(webhookId)));
}
