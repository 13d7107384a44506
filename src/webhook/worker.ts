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
import { orderOf } from "../event/log.ts";
import { retry } from "../base/retry.ts";
import type { Service } from "../base/service.ts";
import { webhookKeys } from "./rows.ts";
import type { Bell } from "../store/bell.ts";
import { STORE_PAUSE_MS } from "../store/retry.ts";
import { Attempts, type AttemptsContext, type Due } from "./attempts.ts";
import { type DeliveryContext, reasonToGiveUp, switchOff } from "./failing.ts";
import { makeLogCursor } from "./log_cursor.ts";
import { type Ended, makeDeliveryWriter } from "./delivery_writer.ts";
import { WEBHOOK_TOPIC } from "./ownership.ts";
import { makeRetries } from "./retries.ts";
import type { WebhookProgress, WebhookRow } from "./webhook.ts";

/** What is on its way at a stop may end within this; the rest goes out again at the next start, under the same id. */
const STOP_GRACE_MS = 3_000;

export interface WorkerContext extends DeliveryContext, AttemptsContext {
  bell: Bell;
}

/** What works once the webhook's progress is loaded. */
interface Parts {
  writer: ReturnType<typeof makeDeliveryWriter>;
  cursor: ReturnType<typeof makeLogCursor>;
  retries: ReturnType<typeof makeRetries>;
  progress: WebhookProgress;
}

export class Worker implements Service {
  readonly #context: WorkerContext;
  readonly #stopping = new AbortController();
  readonly #dropping = new AbortController();
  readonly #attempts: Attempts;
  #webhook: WebhookRow;
  #parts: Parts | null = null;
  #unsubscribe = () => {};
  #beginning: Promise<void> | null = null;
  #ending: Promise<void> | null = null;

  constructor(context: WorkerContext, webhook: WebhookRow) {
    this.#context = context;
    this.#webhook = webhook;
    this.#attempts = new Attempts(context, {
      webhook: () => this.#webhook,
      ended: (due, outcome, target) => this.#ended(due, outcome, target),
      stopping: this.#stopping.signal,
      dropping: this.#dropping.signal,
    });
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
    this.#attempts.resume(progress.failedInARow === 0);
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
    const cursor: Parts["cursor"] = makeLogCursor(events, {
      ...shared,
      cursor: progress.cursor,
      done,
      attempt: (event) => this.#attempts.make({ event, previous: null, number: 1, dueAt: null }),
      moved: () => writer.noteCursor(),
    });
    const retries = makeRetries({ kv, clock }, {
      ...shared,
      attempt: (due) => this.#attempts.make(due),
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

  /** Notes what became of an attempt; a target that took nothing for too long, or asks for it, is switched off. */
  async #ended(due: Due, outcome: Ended["outcome"], target: WebhookRow): Promise<void> {
    if (!this.#parts) return;
    const { writer, progress } = this.#parts;
    writer.add({ ...due, outcome });
    if (outcome.kind === "delivered") return;
    const reason = outcome.kind === "gone"
      ? "The target answered 410 (Gone)."
      : reasonToGiveUp(target, progress, this.#context.runtime.clock.now());
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

  async #end(): Promise<void> {
    this.#unsubscribe();
    this.#stopping.abort();
    await this.#beginning;
    const cancel = this.#context.runtime.clock.after(STOP_GRACE_MS, () => this.#dropping.abort());
    await this.#attempts.idle();
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
