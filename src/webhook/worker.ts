/**
 * One webhook's worker. It follows the event log with a cursor, so that no event is lost by construction (promise 4),
 * and makes retries when they are due.
 *
 * - First attempts and retries have separate places, so that neither starves the other. Workers are independent: an
 *   endpoint that hangs delays no other.
 * - Order: within a lane (one outgoing message; one chat of incoming ones; one session) first attempts are made one at
 *   a time, in the order of the log. Later events may overtake a retry. Ids sort in the order of the log.
 * - Delivery is at least once: an attempt whose outcome was not written before a crash is repeated under the same id.
 */
import { orderOf } from "../event/event_log.ts";
import { retry } from "../base/retry.ts";
import type { Service } from "../base/service.ts";
import { WEBHOOK_TOPIC, webhookKeys } from "./rows.ts";
import type { Bell } from "../store/bell.ts";
import { STORE_PAUSE_MS } from "../store/kv.ts";
import { Attempts, type AttemptsContext, type Due, type Ended } from "./attempts.ts";
import { type DeliveryContext, reasonToGiveUp, switchOff } from "./failing.ts";
import { makeLogCursor } from "./log_cursor.ts";
import { makeDeliveryWriter } from "./delivery_writer.ts";
import { makeRetries } from "./retries.ts";
import type { WebhookProgress, WebhookRow } from "./webhook.ts";

/** Time given to attempts in progress at a stop; the others are repeated at the next start, under the same id. */
const STOP_GRACE_MS = 3_000;

export interface WorkerContext extends DeliveryContext, AttemptsContext {
  bell: Bell;
}

/** The parts that work once the webhook's progress is loaded. */
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
  /** Set while a wake after a failure of the store is due. */
  #cancelWake: (() => void) | null = null;
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

  /** Gives attempts in progress some time, then aborts them; they are repeated at the next start. */
  stop(): Promise<void> {
    return this.#ending ??= this.#end();
  }

  /** Aborts attempts in progress. */
  drop(): void {
    this.#dropping.abort();
  }

  /** Checks for new events and due retries. */
  wake(): void {
    if (this.#stopping.signal.aborted) return;
    this.#parts?.cursor.follow();
    this.#parts?.retries.takeUp();
  }

  /** Called when the webhook was changed. */
  update(webhook: WebhookRow): void {
    this.#webhook = webhook;
    // Events passed over under the old subscription may be redelivered, and are not sent after a restart.
    this.#parts?.writer.noteCursor();
    this.wake();
  }

  async #begin(): Promise<void> {
    const { clock } = this.#context.runtime;
    const { signal } = this.#stopping;
    const onRetry = (error: unknown) => this.#logTrouble(error);
    try {
      await retry(() => this.#load(), { clock, pauseMs: STORE_PAUSE_MS, signal, onRetry });
    } catch (error) {
      // Stopped before the progress was loaded.
      if (!signal.aborted) throw error;
    }
  }

  async #load(): Promise<void> {
    const { kv, events, runtime: { clock }, bell } = this.#context;
    const { id } = this.#webhook;
    const { value: progress } = await kv.get(webhookKeys.webhookProgress(id));
    // The webhook was removed in the meantime.
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
    const cursor: Parts["cursor"] = makeLogCursor({ events, clock }, {
      ...shared,
      cursor: progress.cursor,
      done,
      attempt: (event, readAt) => this.#attempts.make({ event, previous: null, number: 1, dueAt: null, readAt }),
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

  /** Records an attempt's outcome. Switches the webhook off if its target has failed for too long or asks for it. */
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
      // Unless its owner has changed it in the meantime; then the next attempt decides.
      if (this.#webhook === target) this.#webhook = off;
    } catch (error) {
      // The next attempt will try again.
      log.error({ err: error, webhookId: target.id }, "a webhook could not be switched off");
    }
  }

  async #end(): Promise<void> {
    this.#unsubscribe();
    this.#stopping.abort();
    this.#cancelWake?.();
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
    // One for all: each wake may fail twice, and they would double every second.
    this.#cancelWake ??= this.#context.runtime.clock.after(STORE_PAUSE_MS, () => {
      this.#cancelWake = null;
      this.wake();
    });
  }

  #logTrouble(error: unknown): void {
    const { log } = this.#context.runtime;
    log.error({ err: error, webhookId: this.#webhook.id }, "a webhook's work could not be read");
  }
}
