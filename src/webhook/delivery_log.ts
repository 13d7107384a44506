/** A webhook's delivery log: the outcome of each event, and redelivery of one or many. */
import { batchesOf, yielding } from "../base/batches.ts";
import { invalid, notFound } from "../errors.ts";
import type { LoggedEvent } from "../event/event.ts";
import { orderOf } from "../event/event_log.ts";
import type { Clock } from "../runtime.ts";
import { eventKeys } from "../event/rows.ts";
import { WEBHOOK_TOPIC, webhookKeys } from "./rows.ts";
import type { Bell } from "../store/bell.ts";
import { Change, type Kv, retryOnConflict, type Slot } from "../store/kv.ts";
import {
  type Delivery,
  type DeliveryStatus,
  newDelivery,
  orderOfDelivery,
  wants,
  type WebhookProgress,
  type WebhookRow,
} from "./webhook.ts";
import { existingWebhook } from "./webhooks.ts";

/** Rows examined per page: with a filter, a page may be empty although `next` is set. */
const SCAN_LIMIT = 2_000;
/** How far the clocks of the processes that log events may be apart, or be set back. */
const CLOCKS_DIFFER_MS = 60_000;

interface DeliveryQuery {
  status: DeliveryStatus | null;
  /** Id of the previous page's last delivery; null: from the newest. */
  before: string | null;
  limit: number;
}

interface DeliveryLogDeps {
  kv: Kv;
  clock: Clock;
  bell: Pick<Bell, "ring">;
}

export type DeliveryLog = ReturnType<typeof makeDeliveryLog>;

/** All methods throw Problem not_found for an unknown webhook, including another account's. */
export function makeDeliveryLog({ kv, clock, bell }: DeliveryLogDeps) {
  /**
   * Reads a page, newest event first; `next` is the `before` of the following page, null at the end. Throws Problem
   * validation_failed if `before` is not a delivery id of this webhook.
   */
  async function page(
    accountId: string,
    webhookId: string,
    { status, before, limit }: DeliveryQuery,
  ): Promise<{ deliveries: Delivery[]; next: string | null }> {
    const { value: webhook } = await existingWebhook(kv, accountId, webhookId);
    const prefix = webhookKeys.deliveries(webhookId);
    const end = before === null ? null : orderOfDelivery(webhookId, before);
    if (before !== null && end === null) throw invalid("before", "is not the id of a delivery of this webhook");
    const range = end === null ? { prefix } : { prefix, end: [...prefix, end] };
    const deliveries: Delivery[] = [];
    let rows = 0;
    let last: string | null = null;
    for await (const { value } of kv.list(range, { reverse: true, limit: SCAN_LIMIT })) {
      // One row beyond the page proves that there is a next page.
      if (deliveries.length === limit) return { deliveries, next: last };
      rows++;
      last = value.id;
      if (status === null || value.status === status) deliveries.push(shown(value, webhook));
    }
    return { deliveries, next: rows === SCAN_LIMIT ? last : null };
  }

  /**
   * Schedules a new series of attempts, due at once. Throws Problem not_found for an unknown delivery or a removed
   * event.
   */
  async function redeliver(accountId: string, webhookId: string, deliveryId: string): Promise<Delivery> {
    const { value: webhook } = await existingWebhook(kv, accountId, webhookId);
    const order = orderOfDelivery(webhookId, deliveryId);
    if (order === null) throw notFound("delivery");
    const delivery = await retryOnConflict(kv, async () => {
      const event = await kv.get(eventKeys.event(accountId, order));
      const slot = await kv.get(webhookKeys.delivery(webhookId, order));
      if (!slot.value || !event.value) throw notFound("delivery, or its event is no longer kept");
      const change = new Change();
      return { change, result: makeDue(change, webhookId, { event: event.value, slot, now: clock.now() }) };
    });
    bell.ring(WEBHOOK_TOPIC + webhookId);
    return shown(delivery, webhook);
  }

  /**
   * Schedules a new series for every subscribed event since the time (Unix ms), delivered or not, except those whose
   * first attempt is still to come. Not atomic: repeated after a crash, it starts over.
   */
  async function redeliverSince(accountId: string, webhookId: string, since: number): Promise<{ scheduled: number }> {
    const { value: webhook } = await existingWebhook(kv, accountId, webhookId);
    const { value: progress } = await kv.get(webhookKeys.webhookProgress(webhookId));
    if (!progress) throw notFound("webhook");
    const { origin } = progress;
    /** The list is newest first, and times increase with orders, as far as clocks agree. */
    async function* wanted(): AsyncGenerator<LoggedEvent> {
      const newestFirst = kv.list({ prefix: eventKeys.events(accountId) }, { reverse: true });
      for await (const { value: event } of yielding(newestFirst, clock)) {
        if (event.createdAt < since - CLOCKS_DIFFER_MS || orderOf(event.id) <= origin) return;
        if (event.createdAt >= since && wants(webhook, event)) yield event;
      }
    }
    let scheduled = 0;
    // Each is checked; a delivery with many attempts and long errors takes up to 6 KiB.
    for await (const events of batchesOf(wanted(), kv.mostChecks)) {
      scheduled += await redeliverBatch(kv, webhook, { events, progress, now: clock.now() });
    }
    bell.ring(WEBHOOK_TOPIC + webhookId);
    return { scheduled };
  }

  return { page, redeliver, redeliverSince };
}

/** Returns the delivery as shown: what waits for its webhook to be switched on has no next attempt at a known time. */
function shown(delivery: Delivery, { active }: WebhookRow): Delivery {
  return active ? delivery : { ...delivery, nextAttemptAt: null };
}

async function redeliverBatch(
  kv: Kv,
  webhook: WebhookRow,
  { events, progress, now }: { events: readonly LoggedEvent[]; progress: WebhookProgress; now: number },
): Promise<number> {
  return await retryOnConflict(kv, async () => {
    const slots = await kv.getMany(events.map((event) => webhookKeys.delivery(webhook.id, orderOf(event.id))));
    const change = new Change();
    events.forEach((event, i) => {
      const slot = slots[i]!;
      if (slot.value === null && orderOf(event.id) > progress.cursor) return;
      makeDue(change, webhook.id, { event, slot, now });
    });
    return { change, result: change.checks.length, background: true };
  });
}

function makeDue(
  change: Change,
  webhookId: string,
  { event, slot, now }: { event: LoggedEvent; slot: Slot<Delivery>; now: number },
): Delivery {
  const order = orderOf(event.id);
  const before = slot.value;
  const delivery: Delivery = {
    ...before ?? newDelivery(webhookId, event, now),
    status: "pending",
    nextAttemptAt: now,
  };
  const waited = before?.nextAttemptAt ?? null;
  if (waited !== null) change.delete(webhookKeys.dueAttempt(webhookId, waited, order));
  // Checked: an attempt may end in the meantime, and plan its retry.
  change.check(slot).set(webhookKeys.delivery(webhookId, order), delivery)
    .set(webhookKeys.dueAttempt(webhookId, now, order), 1);
  return delivery;
}
