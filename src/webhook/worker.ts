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

/** An attempt that is due. */
type Due = Omit<Ended, "outcome">;

/** What works once the webhook's progress is loaded. */
interface Parts {
  writer: DeliveryWriter;
  cursor: LogCursor;
  retries: Retries;
  progress: WebhookProgress;
}

export class Worker implements Service {
  readonly #context: WorkerContext;
  readonly #stopping = new AbortController();
  readonly #dropping = new AbortController();
  /** Those that are on their way or wait for their turn. */
  readonly #attempts = new Set<Promise<void>>();
  #webhook: WebhookRow;
  /** Whether the last attempt was a success. */
  #works = true;
  #opened: { row: WebhookRow; until: number; secrets: readonly string[] } | null = null;
  #parts: Parts | null = null;
  #unsubscribe = () => {};
  #beginning: Promise<void> | null = null;
  #ending: Promise<void> | null = null;

  constructor(context: WorkerContext, webhook: WebhookRow) {
    this.#context = context;
    this.#webhook = webhook;
  }

  start(): Promise<void> {
    if (this.#beginning || this.#ending) return Promise.resolve();
    this.#unsubscribe = this.#context.events.subscribe(this.#webhook.accountId, () => this.#parts?.cursor.follow());
    this.#beginning = this.#begin();
    return Promise.resolve();
  }

  /** Lets attempts on their way end for a while, then drops them: they are made again at the next start. */
  stop(): Promise<void> {
    return this.#ending ??= this.#end();
  }

  /** Drops the attempts that are on their way. */
  drop(): void {
    this.#dropping.abort();
  }

  /** Looks for events, and for retries that are due. */
  wake(): void {
    if (this.#stopping.signal.aborted) return;
    this.#parts?.cursor.follow();
    this.#parts?.retries.takeUp();
  }

  /** The webhook was changed. */
  update(webhook: WebhookRow): void {
    this.#webhook = webhook;
    this.wake();
  }

  async #begin(): Promise<void> {
    const { clock } = this.#context.runtime;
    const { signal } = this.#stopping;
    const onRetry = (error: unknown) => this.#logTrouble(error);
    try {
      await retry(() => this.#load(), { clock, pauseMs: STORE_PAUSE_MS, signal, onRetry });
    } catch (error) {
      // Stopped before it could begin: the next start does.
      if (!signal.aborted) throw error;
    }
  }

  async #load(): Promise<void> {
    const { kv, events, runtime: { clock }, bell } = this.#context;
    const { id } = this.#webhook;
    const { value: progress } = await kv.get(webhookKeys.webhookProgress(id));
    // Removed in the meantime.
    if (!progress) return;
    this.#works = progress.failedInARow === 0;
    const done = new Set<string>();
    const prefix = webhookKeys.deliveries(id);
    for await (const { key } of kv.list({ prefix, start: [...prefix, progress.cursor + "\0"] })) {
      done.add(String(key[2]));
    }

    const webhook = () => this.#webhook;
    const shared = {
      webhook,
      failed: (error: unknown) => this.#storeFailed(error),
      stopped: this.#stopping.signal,
    };
    const cursor: LogCursor = makeLogCursor(events, {
      ...shared,
      cursor: progress.cursor,
      done,
      attempt: (event) => this.#attempt({ event, previous: null, number: 1, dueAt: null }),
      moved: () => writer.noteCursor(),
    });
    const retries = makeRetries({ kv, clock }, {
      ...shared,
      attempt: (due) => this.#attempt(due),
      wakeAt: (atMs) => bell.ringAt(WEBHOOK_TOPIC + id, atMs),
    });
    const writer = makeDeliveryWriter(this.#context, {
      webhook,
      progress,
      cursorAfter: (batch) => cursor.after(batch.map(({ event }) => event)),
      written: (batch, deliveries) => {
        const retried = batch.filter(({ dueAt }) => dueAt !== null).map(({ event }) => orderOf(event.id));
        if (retried.length > 0 || deliveries.some(({ status }) => status === "pending")) retries.written(retried);
      },
    }, this.#dropping.signal);
    this.#parts = { writer, cursor, retries, progress };
    this.wake();
  }

  #attempt(due: Due): Promise<void> {
    const made = this.#inTurn(due).finally(() => this.#attempts.delete(made));
    this.#attempts.add(made);
    return made;
  }

  async #inTurn(due: Due): Promise<void> {
    const { places: { working, failing }, runtime: { clock } } = this.#context;
    const { signal } = this.#stopping;
    const turn = { party: this.#webhook.accountId, lane: this.#webhook.id, signal };
    try {
      // It may fail since it began to wait.
      if (this.#works && await working.run(turn, () => this.#whileItWorks(due))) return;
      await failing.run(turn, async () => {
        await this.#makeAttempt(due);
        if (!this.#works) await sleep(clock, FAILING_REST_MS, signal);
      });
    } catch (error) {
      // Its turn did not come before the stop: the next start makes it.
      if (error !== signal.reason) throw error;
    }
  }

  /** Whether it was made. */
  async #whileItWorks(due: Due): Promise<boolean> {
    if (!this.#works) return false;
    await this.#makeAttempt(due);
    return true;
  }

  async #makeAttempt(due: Due): Promise<void> {
    const { clock } = this.#context.runtime;
    const target = this.#webhook;
    const outcome = await attemptDelivery(this.#context, {
      url: target.url,
      secrets: () => this.#secretsOf(target),
      event: due.event,
      signal: this.#dropping.signal,
    });
    if (outcome.kind === "stopped" || !this.#parts) return;
    const { writer, progress } = this.#parts;
    this.#works = outcome.kind === "delivered";
    writer.add({ ...due, outcome });
    const reason = outcome.kind === "gone"
      ? "The target answered 410 (Gone)."
      : this.#works
      ? null
      : reasonToGiveUp(target, progress, clock.now());
    if (reason === null) return;
    await this.#switchOff(target, { event: due.event, progress, lastError: outcome.attempt.error ?? "gone", reason });
  }

  async #switchOff(target: WebhookRow, report: Parameters<typeof switchOff>[2]): Promise<void> {
    const { log } = this.#context.runtime;
    try {
      const off = await switchOff(this.#context, target, report) ?? { ...target, active: false };
      // Unless its owner has changed it meanwhile: then the next attempt says.
      if (this.#webhook === target) this.#webhook = off;
    } catch (error) {
      // The next attempt finds the same.
      log.error({ err: error, webhookId: target.id }, "a webhook could not be switched off");
    }
  }

  /** Opened once: what signs changes with the row, and with the end of a rotation. */
  #secretsOf(target: WebhookRow): readonly string[] {
    const { seal, runtime } = this.#context;
    const now = runtime.clock.now();
    const until = target.previousSecretUntil ?? Infinity;
    if (this.#opened?.row !== target || now >= this.#opened.until) {
      const secrets = liveSecrets(target, { seal, now });
      this.#opened = { row: target, until: until > now ? until : Infinity, secrets };
    }
    return this.#opened.secrets;
  }

  async #end(): Promise<void> {
    this.#unsubscribe();
    this.#stopping.abort();
    await this.#beginning;
    const cancel = this.#context.runtime.clock.after(STOP_GRACE_MS, () => this.#dropping.abort());
    while (this.#attempts.size > 0) await Promise.all(this.#attempts);
    cancel();
    this.#dropping.abort();
    if (!this.#parts) return;
    this.#parts.writer.noteCursor();
    await this.#parts.writer.flushed();
  }

  #storeFailed(error: unknown): void {
    this.#logTrouble(error);
    this.#context.runtime.clock.after(STORE_PAUSE_MS, () => this.wake());
  }

  #logTrouble(error: unknown): void {
    const { log } = this.#context.runtime;
    log.error({ err: error, webhookId: this.#webhook.id }, "a webhook's work could not be read");
  }
}
