/** The scheduled attempts of one webhook, retries and redeliveries, made when they are due. */
import type { Clock, Runtime } from "../runtime.ts";
import { RETRY_AFTER_MAX_MS } from "./target.ts";
import { eventKeys } from "../event/rows.ts";
import { webhookKeys } from "./rows.ts";
import { Change, type Key, type Kv, type Slot } from "../store/kv.ts";
import { singleFlight } from "../base/single_flight.ts";
import type { Due, Fate } from "./attempts.ts";
import { givenUp } from "./sweep.ts";
import type { Delivery, WebhookRow } from "./webhook.ts";

/** Pauses before the second, third and fourth attempt (spec: up to 3 retries, exponential). */
const RETRY_DELAYS_MS = [5_000, 25_000, 120_000] as const;
/** Each pause varies by this much, so that a recovering receiver is not hit by all retries at once. */
const JITTER = 0.1;

/**
 * Concurrent scheduled attempts, separate from first attempts, so that a burst of failures does not delay new events.
 */
const PLACES = 8;

interface RetriesOptions {
  webhook: () => WebhookRow;
  /** Makes the attempt; never rejects. */
  attempt(due: Due): Promise<Fate>;
  /** Arranges a call of `takeUp` at that time, Unix ms. */
  wakeAt(atMs: number): void;
  /** Called when the rows could not be read. */
  failed(error: unknown): void;
  stopped: AbortSignal;
}

export function makeRetries({ kv, clock }: { kv: Kv; clock: Clock }, options: RetriesOptions) {
  const { webhook, attempt, wakeAt, failed, stopped } = options;
  /** Orders whose attempt has begun and whose row has not been replaced yet. */
  const taken = new Set<string>();
  let running = 0;

  async function look(): Promise<void> {
    if (!webhook().active || stopped.aborted) return;
    // Of possibly thousands, read only those that have begun, those that may begin now, and one more.
    const limit = taken.size + PLACES - running + 1;
    for await (const row of kv.list({ prefix: webhookKeys.dueAttempts(webhook().id) }, { limit })) {
      const dueAt = Number(row.key[2]);
      const order = String(row.key[3]);
      if (taken.has(order)) continue;
      // No pause is longer than this, so a later time was computed with a wrong clock.
      const waitMs = dueAt - clock.now();
      if (waitMs > 0 && waitMs <= RETRY_AFTER_MAX_MS) return wakeAt(dueAt);
      if (running >= PLACES) return;
      taken.add(order);
      running++;
      void run({ order, dueAt, number: row.value });
    }
  }

  async function run({ order, dueAt, number }: { order: string; dueAt: number; number: number }): Promise<void> {
    try {
      const { accountId, id } = webhook();
      const [due, event, previous] = await Promise.all([
        kv.get(webhookKeys.dueAttempt(id, dueAt, order)),
        kv.get(eventKeys.event(accountId, order)),
        kv.get(webhookKeys.delivery(id, order)),
      ]);
      // Null: its outcome was written while the list was read.
      if (due.value !== null) {
        const fate = event.value
          ? await attempt({ event: event.value, previous: previous.value, number, dueAt, readAt: clock.now() })
          : "gone";
        // Then `written` ends it.
        if (fate === "made") return;
        if (fate === "gone") await giveUp(due.key, previous);
      }
      taken.delete(order);
    } catch (error) {
      taken.delete(order);
      failed(error);
    } finally {
      running--;
      takeUp();
    }
  }

  /** The event is gone. The sweep marked its delivery as failed, but an attempt in progress may have overwritten that. */
  async function giveUp(due: Key, delivery: Slot<Delivery>): Promise<void> {
    const change = new Change().delete(due);
    if (delivery.value?.status === "pending") {
      change.check(delivery).set(delivery.key, givenUp(delivery.value, clock.now()));
    }
    await kv.commit(change);
  }

  const looking = singleFlight(() => look().catch(failed));
  /** Starts due attempts and arranges to be called for the next one. */
  const takeUp = () => void looking();

  return {
    takeUp,
    /** Called when the outcomes of these attempts are written and their rows are gone. */
    written(orders: readonly string[]): void {
      for (const order of orders) taken.delete(order);
      takeUp();
    },
  };
}

/** Returns when the attempt after the `number`th of a series is due, Unix ms; null if that was the last. */
export function nextAttemptAt(
  number: number,
  { retryAfterMs, runtime }: { retryAfterMs: number | null; runtime: Runtime },
): number | null {
  const delayMs = RETRY_DELAYS_MS[number - 1];
  if (delayMs === undefined) return null;
  const spread = Math.round(delayMs * JITTER);
  const pauseMs = delayMs + runtime.random.between(-spread, spread);
  return runtime.clock.now() + Math.max(pauseMs, retryAfterMs ?? 0);
}
