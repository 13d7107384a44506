/**
 * Writes the outcomes of a webhook's deliveries in batches: attempts that end during one commit are written by the
 * next, so that a busy webhook needs few commits.
 */
import { orderOf } from "../event/event_log.ts";
import { type Runtime, sleep } from "../runtime.ts";
import { webhookKeys } from "./rows.ts";
import { Change, LINGER_MS, STORE_PAUSE_MS } from "../store/kv.ts";
import { retry } from "../base/retry.ts";
import { singleFlight } from "../base/single_flight.ts";
import type { Ended } from "./attempts.ts";
import { type DeliveryContext, failingEvent, isNewlyFailing } from "./failing.ts";
import { nextAttemptAt } from "./retries.ts";
import { type Delivery, newDelivery, type WebhookProgress, type WebhookRow } from "./webhook.ts";

/** Outcomes per commit; each takes at most five mutations. */
const BATCH = 100;
/** Most attempts recorded per delivery, over all redeliveries; the newest are kept. */
const ATTEMPTS_KEPT = 20;

interface DeliveryWriterOptions {
  webhook: () => WebhookRow;
  progress: WebhookProgress;
  /** Returns the cursor to write together with these outcomes. */
  cursorAfter(batch: readonly Ended[]): string;
  /** Called once the batch is written, with the updated deliveries. */
  written(batch: readonly Ended[], deliveries: readonly Delivery[]): void;
}

export function makeDeliveryWriter(
  { kv, events, runtime }: DeliveryContext,
  { webhook, progress, cursorAfter, written }: DeliveryWriterOptions,
  signal: AbortSignal,
) {
  const waiting: Ended[] = [];
  let cursorMoved = false;

  const flush = singleFlight(async () => {
    while (waiting.length > 0 || cursorMoved) {
      cursorMoved = false;
      const batch = waiting.slice(0, BATCH);
      // Once: a write that is repeated, because the first one's answer was lost, must not plan a second retry.
      const deliveries = batch.map((ended) => settle(webhook().id, ended, runtime));
      const options = { clock: runtime.clock, pauseMs: STORE_PAUSE_MS, signal, onRetry: logTrouble };
      try {
        await retry(() => write(batch, deliveries), options);
      } catch (error) {
        // Stopped: these attempts are repeated at the next start.
        return logTrouble(error);
      }
      waiting.splice(0, batch.length);
    }
  });

  function logTrouble(error: unknown): void {
    runtime.log.error({ err: error, webhookId: webhook().id }, "deliveries could not be written down yet");
  }

  async function write(batch: readonly Ended[], deliveries: readonly Delivery[]): Promise<void> {
    const row = webhook();
    const change = new Change();
    const next = { ...progress, cursor: cursorAfter(batch) };
    batch.forEach((ended, i) => addDelivery(change, row.id, { ended, delivery: deliveries[i]! }));
    deliveries.forEach((delivery) => count(next, delivery, runtime.clock.now()));
    const last = deliveries.findLastIndex((delivery) => delivery.status === "failed");
    const emitted = last >= 0 && isNewlyFailing(next, runtime.clock.now());
    if (emitted) {
      next.announcedAt = runtime.clock.now();
      const lastError = deliveries[last]!.attempts.at(-1)?.error ?? "unknown";
      events.append(change, failingEvent(row, { event: batch[last]!.event, progress: next, lastError }));
    }
    change.set(webhookKeys.webhookProgress(row.id), next);
    // A full batch has a flush of its own: if it waited for others', that would bound a busy webhook's deliveries.
    const isFull = batch.length === BATCH;
    await kv.commit(change, isFull ? {} : { lingerUntil: sleep(runtime.clock, LINGER_MS, signal) });
    Object.assign(progress, next);
    if (emitted) events.committed(row.accountId);
    written(batch, deliveries);
  }

  return {
    add(ended: Ended): void {
      waiting.push(ended);
      void flush();
    },
    /** Writes the cursor although no attempt has ended. */
    noteCursor(): void {
      cursorMoved = true;
      void flush();
    },
    /** Resolves when everything added has been written. Gives up if the store fails after the signal has aborted. */
    flushed: flush,
  };
}

/** Returns the delivery after the attempt: delivered, failed for good, or pending. */
function settle(webhookId: string, { event, previous, number, outcome }: Ended, runtime: Runtime): Delivery {
  const attempts = [...previous?.attempts ?? [], outcome.attempt].slice(-ATTEMPTS_KEPT);
  const next = outcome.kind === "failed"
    ? nextAttemptAt(number, { retryAfterMs: outcome.retryAfterMs, runtime })
    : null;
  return {
    ...previous ?? newDelivery(webhookId, event, outcome.attempt.at),
    status: outcome.kind === "delivered" ? "delivered" : next === null ? "failed" : "pending",
    attempts,
    nextAttemptAt: next,
  };
}

function addDelivery(
  change: Change,
  webhookId: string,
  { ended, delivery }: { ended: Ended; delivery: Delivery },
): void {
  const order = orderOf(ended.event.id);
  change.set(webhookKeys.delivery(webhookId, order), delivery);
  // The delivery may name another attempt: a retry that was planned after a redelivery had been asked for.
  for (const dueAt of new Set([ended.dueAt, ended.previous?.nextAttemptAt ?? null])) {
    if (dueAt !== null) change.delete(webhookKeys.dueAttempt(webhookId, dueAt, order));
  }
  if (delivery.nextAttemptAt !== null) {
    change.set(webhookKeys.dueAttempt(webhookId, delivery.nextAttemptAt, order), ended.number + 1);
  }
}

/** Updates the count of consecutive failed deliveries. */
function count(progress: WebhookProgress, delivery: Delivery, now: number): void {
  if (delivery.status === "delivered") {
    Object.assign(progress, { failedInARow: 0, failingSince: null, announcedAt: null });
  }
  if (delivery.status === "failed") {
    progress.failedInARow++;
    progress.failingSince ??= now;
  }
}
