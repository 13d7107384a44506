/**
 * Writes the outcomes of a webhook's deliveries: whatever ended while one commit was being written goes into the next,
 * so that a busy webhook costs few commits.
 */
import type { LoggedEvent } from "../event/event.ts";
import { orderOf } from "../event/log.ts";
import { type Runtime, sleep } from "../runtime.ts";
import { webhookKeys } from "./rows.ts";
import { STORE_PAUSE_MS } from "../store/retry.ts";
import { Change, LINGER_MS } from "../store/kv.ts";
import { retry } from "../base/retry.ts";
import { singleFlight } from "../base/single_flight.ts";
import { type AttemptOutcome, nextAttemptAt } from "./delivery.ts";
import { type DeliveryContext, failingEvent, isNewlyFailing } from "./failing.ts";
import { type Delivery, newDelivery, type WebhookProgress, type WebhookRow } from "./webhook.ts";

/** Results in one commit; each is at most five mutations. */
const BATCH = 100;
/** Most attempts that a result carries: the newest, over all redeliveries. */
const ATTEMPTS_KEPT = 20;

/** An attempt that has ended and is not written down yet. */
export interface Ended {
  event: LoggedEvent;
  /** The delivery as it was before; null for a first attempt. */
  previous: Delivery | null;
  /** Number of the attempt in its series, from 1. */
  number: number;
  /** The waiting row that it came from; null for an attempt straight from the log. */
  dueAt: number | null;
  outcome: Exclude<AttemptOutcome, { kind: "stopped" }>;
}

interface DeliveryWriterOptions {
  webhook: () => WebhookRow;
  progress: WebhookProgress;
  /** The cursor once these results are written. */
  cursorAfter(batch: readonly Ended[]): string;
  /** They are written; with the deliveries as they now stand. */
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
      const batch = waiting.slice(0, BATCH);
      try {
        await retry(() => write(batch), { clock: runtime.clock, pauseMs: STORE_PAUSE_MS, signal, onRetry: logTrouble });
      } catch (error) {
        // Given up on stop: these attempts are made again at the next start.
        return logTrouble(error);
      }
      waiting.splice(0, batch.length);
      cursorMoved = false;
    }
  });

  function logTrouble(error: unknown): void {
    runtime.log.error({ err: error, webhookId: webhook().id }, "deliveries could not be written down yet");
  }

  async function write(batch: readonly Ended[]): Promise<void> {
    const row = webhook();
    const change = new Change();
    const deliveries = batch.map((ended) => settle(row.id, ended, runtime));
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
    await kv.commit(change, { lingerUntil: sleep(runtime.clock, LINGER_MS, signal) });
    Object.assign(progress, next);
    if (emitted) events.committed(row.accountId);
    written(batch, deliveries);
  }

  return {
    add(ended: Ended): void {
      waiting.push(ended);
      void flush();
    },
    /** Writes the cursor although nothing ended: many events were not for this webhook. */
    noteCursor(): void {
      cursorMoved = true;
      void flush();
    },
    /** Resolves when everything that was added is written. Gives up when the store refuses after the signal aborted. */
    flushed: flush,
  };
}

/** The delivery after the attempt: delivered, failed for good, or waiting for the next. */
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
  if (ended.dueAt !== null) change.delete(webhookKeys.dueAttempt(webhookId, ended.dueAt, order));
  if (delivery.nextAttemptAt !== null) {
    change.set(webhookKeys.dueAttempt(webhookId, delivery.nextAttemptAt, order), ended.number + 1);
  }
}

/** Failures in a row, by deliveries that have ended. */
function count(progress: WebhookProgress, delivery: Delivery, now: number): void {
  if (delivery.status === "delivered") {
    Object.assign(progress, { failedInARow: 0, failingSince: null, announcedAt: null });
  }
  if (delivery.status === "failed") {
    progress.failedInARow++;
    progress.failingSince ??= now;
  }
}
