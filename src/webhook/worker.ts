/**
 * One webhook's worker: it follows the event log with a cursor, so that nothing is lost by construction (promise 4), and
 * takes up retries when they are due.
 *
 * - Fresh events and retries have places of their own, so that neither starves the other, and no worker knows of
 *   another: an endpoint that hangs delays nobody else.
 * - Order: within a lane (one outgoing message; one chat of incoming ones; one session) first attempts go one at a
 *   time, in the order of the log. A retry may be overtaken. Ids sort in the order of the log.
 * - At least once: what ended before a crash and was not written down is sent again under the same id.
 */
import type { SafeFetch } from "../egress/safe_fetch.ts";
import { orderOf } from "../event/log.ts";
import { retry } from "../base/retry.ts";
import { sleep } from "../runtime.ts";
import type { Service } from "../base/service.ts";
import type { Turns } from "../base/turns.ts";
import { webhookKeys } from "./rows.ts";
import type { Bell } from "../store/bell.ts";
import { STORE_PAUSE_MS } from "../store/retry.ts";
import type { Seal } from "../store/seal.ts";
import { attemptDelivery } from "./delivery.ts";
import { type DeliveryContext, reasonToGiveUp, switchOff } from "./failing.ts";
import { type LogCursor, makeLogCursor } from "./log_cursor.ts";
import { type DeliveryWriter, type Ended, makeDeliveryWriter } from "./delivery_writer.ts";
import { WEBHOOK_TOPIC } from "./ownership.ts";
import { makeRetries, type Retries } from "./retries.ts";
import { liveSecrets, type WebhookProgress, type WebhookRow } from "./webhook.ts";

/** What is on its way at a stop may end within this; the rest goes out again at the next start, under the same id. */
const STOP_GRACE_MS = 3_000;

/** How long a place rests after an attempt that failed: an endpoint that refuses at once is not called as fast as it can. */
const FAILING_REST_MS = 250;

export interface WorkerContext extends DeliveryContext {
  safeFetch: SafeFetch;
  seal: Seal;
  bell: Bell;
  places: Places;
}

/** Places for the attempts of all webhooks, which accounts share. */
interface Places {
  working: Turns;
  /** For endpoints whose last attempt failed: what hangs or fails takes no place from what works. */
  failing: Turns;
}

export interface Worker extends Service {
  /** Looks for events, and for retries that are due. */
  wake(): void;
  /** The webhook was changed. */
  update(row: WebhookRow): void;
  /** Drops the attempts that are on their way. */
  drop(): void;
}

/** `stop` lets attempts on their way end for a while, then drops them: they are made again at the next start. */
export function makeWorker(context: WorkerContext, row: WebhookRow): Worker {
  const { kv, events, runtime, seal } = context;
  const { clock, log } = runtime;
  const stopping = new AbortController();
  const dropping = new AbortController();
  const attempts = new Set<Promise<void>>();
  let webhook = row;
  /** Whether the last attempt was a success. */
  let works = true;
  let opened: { row: WebhookRow; until: number; secrets: readonly string[] } | null = null;
  let parts: { writer: DeliveryWriter; cursor: LogCursor; retries: Retries; progress: WebhookProgress } | null = null;

  async function load(): Promise<void> {
    const { value: progress } = await kv.get(webhookKeys.webhookProgress(row.id));
    // Removed in the meantime.
    if (!progress) return;
    works = progress.failedInARow === 0;
    const done = new Set<string>();
    const prefix = webhookKeys.deliveries(row.id);
    for await (const { key } of kv.list({ prefix, start: [...prefix, progress.cursor + "\0"] })) {
      done.add(String(key[2]));
    }

    const shared = { webhook: () => webhook, failed: storeFailed, stopped: stopping.signal };
    const cursor: LogCursor = makeLogCursor(events, {
      ...shared,
      cursor: progress.cursor,
      done,
      attempt: (event) => attempt({ event, previous: null, number: 1, dueAt: null }),
      moved: () => writer.noteCursor(),
    });
    const retries = makeRetries({ kv, clock }, {
      ...shared,
      attempt,
      wakeAt: (atMs) => context.bell.ringAt(WEBHOOK_TOPIC + row.id, atMs),
    });
    const writer = makeDeliveryWriter(context, {
      webhook: () => webhook,
      progress,
      cursorAfter: (batch) => cursor.after(batch.map(({ event }) => event)),
      written: (batch, deliveries) => {
        const retried = batch.filter(({ dueAt }) => dueAt !== null).map(({ event }) => orderOf(event.id));
        if (retried.length > 0 || deliveries.some(({ status }) => status === "pending")) retries.written(retried);
      },
    }, dropping.signal);
    parts = { writer, cursor, retries, progress };
    wake();
  }

  /** Opened once: what signs changes with the row, and with the end of a rotation. */
  function secretsOf(target: WebhookRow): readonly string[] {
    const now = clock.now();
    const until = target.previousSecretUntil ?? Infinity;
    if (opened?.row !== target || now >= opened.until) {
      opened = { row: target, until: until > now ? until : Infinity, secrets: liveSecrets(target, { seal, now }) };
    }
    return opened.secrets;
  }

  function attempt(due: Omit<Ended, "outcome">): Promise<void> {
    const made = inTurn(due).finally(() => attempts.delete(made));
    attempts.add(made);
    return made;
  }

  async function inTurn(due: Omit<Ended, "outcome">): Promise<void> {
    const turn = { party: row.accountId, lane: row.id, signal: stopping.signal };
    const { working, failing } = context.places;
    try {
      // It may fail since it began to wait.
      if (works && await working.run(turn, () => whileItWorks(due))) return;
      await failing.run(turn, async () => {
        await makeAttempt(due);
        if (!works) await sleep(clock, FAILING_REST_MS, stopping.signal);
      });
    } catch (error) {
      // Its turn did not come before the stop: the next start makes it.
      if (error !== stopping.signal.reason) throw error;
    }
  }

  /** Whether it was made. */
  async function whileItWorks(due: Omit<Ended, "outcome">): Promise<boolean> {
    if (!works) return false;
    await makeAttempt(due);
    return true;
  }

  async function makeAttempt(due: Omit<Ended, "outcome">): Promise<void> {
    const target = webhook;
    const outcome = await attemptDelivery(context, {
      url: target.url,
      secrets: () => secretsOf(target),
      event: due.event,
      signal: dropping.signal,
    });
    if (outcome.kind === "stopped" || !parts) return;
    works = outcome.kind === "delivered";
    parts.writer.add({ ...due, outcome });
    const reason = outcome.kind === "gone"
      ? "The target answered 410 (Gone)."
      : works
      ? null
      : reasonToGiveUp(target, parts.progress, clock.now());
    if (reason === null) return;
    const report = { event: due.event, progress: parts.progress, lastError: outcome.attempt.error ?? "gone", reason };
    try {
      const off = await switchOff(context, target, report) ?? { ...target, active: false };
      // Unless its owner has changed it meanwhile: then the next attempt says.
      if (webhook === target) webhook = off;
    } catch (error) {
      // The next attempt finds the same.
      log.error({ err: error, webhookId: row.id }, "a webhook could not be switched off");
    }
  }

  function logTrouble(error: unknown): void {
    log.error({ err: error, webhookId: row.id }, "a webhook's work could not be read");
  }

  function storeFailed(error: unknown): void {
    logTrouble(error);
    clock.after(STORE_PAUSE_MS, wake);
  }

  function wake(): void {
    if (stopping.signal.aborted) return;
    parts?.cursor.follow();
    parts?.retries.takeUp();
  }

  async function begin(): Promise<void> {
    try {
      await retry(load, { clock, pauseMs: STORE_PAUSE_MS, signal: stopping.signal, onRetry: logTrouble });
    } catch (error) {
      // Stopped before it could begin: the next start does.
      if (!stopping.signal.aborted) throw error;
    }
  }

  async function end(): Promise<void> {
    unsubscribe();
    stopping.abort();
    await beginning;
    const cancel = clock.after(STOP_GRACE_MS, () => dropping.abort());
    while (attempts.size > 0) await Promise.all(attempts);
    cancel();
    dropping.abort();
    if (parts) {
      parts.writer.noteCursor();
      await parts.writer.flushed();
    }
  }

  let unsubscribe = () => {};
  let beginning: Promise<void> | null = null;
  let ending: Promise<void> | null = null;

  return {
    start() {
      if (beginning || ending) return Promise.resolve();
      unsubscribe = events.subscribe(row.accountId, () => parts?.cursor.follow());
      beginning = begin();
      return Promise.resolve();
    },
    stop: () => ending ??= end(),
    drop: () => dropping.abort(),
    wake,
    update(next) {
      webhook = next;
      wake();
    },
  };
}
