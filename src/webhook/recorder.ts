/**
 * Writes down what became of a webhook's deliveries: whatever ended while one commit was on its way goes into the next,
 * so that a busy webhook costs few commits. Says so in the event log when a webhook keeps failing.
 */
import type { LoggedEvent } from "../event/event.ts";
import { orderOf } from "../event/event_log.ts";
import type { EventLog } from "../event/log.ts";
import type { Runtime } from "../runtime.ts";
import { sleep } from "../runtime.ts";
import { webhookKeys } from "./rows.ts";
import { Change, type Kv } from "../store/kv.ts";
import { coalesced } from "./coalesced.ts";
import { type AttemptOutcome, nextAttemptAt } from "./delivery.ts";
import { failingEvent } from "./failing.ts";
import { deliveryId, type WebhookProgress, type WebhookRow } from "./webhook_rows.ts";
import type { Delivery } from "./webhooks.ts";

/** `webhook.failing` is logged when so many deliveries in a row have used up their attempts … */
const FAILING_AFTER = 3;
/** … and again at most so often while it goes on. */
const FAILING_AGAIN_MS = 3_600_000;
/** Results in one commit; each is at most five mutations. */
const BATCH = 100;
/** A result carries so many attempts at most: the newest, over all redeliveries. */
const ATTEMPTS_KEPT = 20;
/** Before a commit that the store refused is tried again. */
const STORE_PAUSE_MS = 1_000;

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

export interface RecorderContext {
  kv: Kv;
  events: EventLog;
  runtime: Runtime;
}

export interface RecorderOptions {
  webhook: () => WebhookRow;
  progress: WebhookProgress;
  /** The cursor, should these results be written. */
  cursorAfter(batch: readonly Ended[]): string;
  /** They are; with the deliveries as they now stand. */
  recorded(batch: readonly Ended[], deliveries: readonly Delivery[]): void;
}

export interface Recorder {
  add(ended: Ended): void;
  /** Writes the cursor down although nothing ended: many events were none of this webhook's. */
  noteCursor(): void;
  /** Resolves when everything that was added is written. Gives up when the store refuses after the signal aborted. */
  flushed(): Promise<void>;
}

export function makeRecorder(
  { kv, events, runtime }: RecorderContext,
  { webhook, progress, cursorAfter, recorded }: RecorderOptions,
  signal: AbortSignal,
): Recorder {
  const waiting: Ended[] = [];
  let cursorMoved = false;

  const flush = coalesced(async () => {
    while (waiting.length > 0 || cursorMoved) {
      const batch = waiting.slice(0, BATCH);
      try {
        await write(batch);
        waiting.splice(0, batch.length);
        cursorMoved = false;
      } catch (error) {
        runtime.log.error({ err: error, webhookId: webhook().id }, "deliveries could not be written down yet");
        if (signal.aborted) return;
        await sleep(runtime.clock, STORE_PAUSE_MS, signal);
      }
    }
  });

  async function write(batch: readonly Ended[]): Promise<void> {
    const row = webhook();
    const change = new Change();
    const deliveries = batch.map((ended) => settle(row.id, ended, runtime));
    const next = { ...progress, cursor: cursorAfter(batch) };
    batch.forEach((ended, i) => addDelivery(change, row.id, { ended, delivery: deliveries[i]! }));
    deliveries.forEach((delivery) => count(next, delivery, runtime.clock.now()));
    const announced = announce(change, { row, batch, deliveries, next });
    change.set(webhookKeys.webhookProgress(row.id), next);
    await kv.commit(change);
    Object.assign(progress, next);
    if (announced) events.committed(row.accountId);
    recorded(batch, deliveries);
  }

  /** Adds `webhook.failing` when it is time to. */
  function announce(
    change: Change,
    { row, batch, deliveries, next }: {
      row: WebhookRow;
      batch: readonly Ended[];
      deliveries: readonly Delivery[];
      next: WebhookProgress;
    },
  ): boolean {
    const now = runtime.clock.now();
    if (next.failedInARow < FAILING_AFTER) return false;
    if (next.announcedAt !== null && now - next.announcedAt < FAILING_AGAIN_MS) return false;
    const last = deliveries.findLastIndex((delivery) => delivery.status === "failed");
    if (last < 0) return false;
    next.announcedAt = now;
    const lastError = deliveries[last]!.attempts.at(-1)?.error ?? "unknown";
    events.append(change, failingEvent(row, { event: batch[last]!.event, progress: next, lastError }));
    return true;
  }

  return {
    add(ended) {
      waiting.push(ended);
      void flush();
    },
    noteCursor() {
      cursorMoved = true;
      void flush();
    },
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
    id: previous?.id ?? deliveryId(webhookId, orderOf(event.id)),
    eventId: event.id,
    event: event.event,
    status: outcome.kind === "delivered" ? "delivered" : next === null ? "failed" : "pending",
    attempts,
    createdAt: previous?.createdAt ?? outcome.attempt.at,
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
