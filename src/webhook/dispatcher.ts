/** Runs one worker per webhook and applies the owners' changes. */
import type { Service } from "../base/service.ts";
import { Loop, onDemand } from "../base/single_flight.ts";
import { FairSemaphore } from "../base/fair_semaphore.ts";
import type { Holder } from "../cluster/holder.ts";
import { CHANGED_TOPIC, WEBHOOK, WEBHOOK_TOPIC } from "./rows.ts";
import type { WebhookRow } from "./webhook.ts";
import type { Worker, WorkerContext } from "./worker.ts";

/** How often all workers are woken and the rows are checked for webhooks without a worker, in case a ring was lost. */
const SWEEP_MS = 30_000;

/** Concurrent attempts in total, and of one account, which a single webhook may use up by itself. */
const WORKING = { inAll: 128, each: 32 };
/** The same for endpoints whose last attempt failed: most of these attempts time out after 10 s or fail at once. */
const FAILING = { inAll: 32, each: 8 };

/** How HTTP notifies the owner of a webhook, in this process or another. */
export interface WebhookOwner {
  /** Called when the webhook was created or changed. */
  changed(webhook: WebhookRow): void;
  /** Called when the webhook was removed; resolves when nothing is written for it any longer. */
  removed(webhookId: string): Promise<void>;
}

interface DispatcherContext extends Omit<WorkerContext, "places"> {
  /** The webhooks that this process works for. */
  holder: Holder<WebhookRow>;
}

/** Resumes pending deliveries at its start (promise 4). */
export class Dispatcher implements Service, WebhookOwner {
  readonly #context: DispatcherContext;
  readonly #places = { working: new FairSemaphore(WORKING), failing: new FairSemaphore(FAILING) };
  /** Loaded with the first webhook. */
  readonly #code = onDemand(() => import("./worker.ts"));
  readonly #workers = new Map<string, { worker: Worker; updatedAt: number }>();
  readonly #sweeps: Loop;
  readonly #deafen: (() => void)[] = [];
  #running = false;

  constructor(context: DispatcherContext) {
    this.#context = context;
    this.#sweeps = new Loop(context.runtime.clock, () => this.#sweep());
  }

  async start(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    const { bell } = this.#context;
    this.#sweeps.start(SWEEP_MS);
    this.#deafen.push(
      bell.hear(WEBHOOK_TOPIC, (topic) => {
        // Rings of other processes may have been lost: any webhook may have work.
        if (topic === WEBHOOK_TOPIC) this.#wakeAll();
        else this.#workers.get(topic.slice(WEBHOOK_TOPIC.length))?.worker.wake();
      }),
      bell.hear(CHANGED_TOPIC, () => this.taken()),
    );
    await this.#takeUpOthers();
  }

  async stop(): Promise<void> {
    this.#running = false;
    for (const deaf of this.#deafen.splice(0)) deaf();
    await this.#sweeps.stop();
    await Promise.all([...this.#workers.keys()].map((webhookId) => this.drop(webhookId)));
  }

  changed(webhook: WebhookRow): void {
    if (!this.#running) return;
    const known = this.#workers.get(webhook.id);
    if (!known) return this.#code.made() ? this.#begin(webhook) : this.taken();
    // A sweep may have read the row before a change that has been passed on since.
    if (webhook.updatedAt <= known.updatedAt) return;
    known.updatedAt = webhook.updatedAt;
    known.worker.update(webhook);
  }

  async removed(webhookId: string): Promise<void> {
    this.#workers.get(webhookId)?.worker.drop();
    await this.drop(webhookId);
  }

  /** Starts workers for webhooks whose leases this process has taken. */
  taken(): void {
    void this.#sweeps.now();
  }

  /** Stops the worker of a webhook that this process no longer owns; resolves when it has written everything. */
  async drop(webhookId: string): Promise<void> {
    const known = this.#workers.get(webhookId);
    this.#workers.delete(webhookId);
    await known?.worker.stop();
  }

  /** Number of attempts waiting for their account's turn. */
  waiting(): number {
    return this.#places.working.waiting + this.#places.failing.waiting;
  }

  #wakeAll(): void {
    for (const { worker } of this.#workers.values()) worker.wake();
  }

  async #sweep(): Promise<number> {
    this.#wakeAll();
    try {
      await this.#takeUpOthers();
    } catch (error) {
      this.#context.runtime.log.warn({ err: error }, "could not list webhooks");
    }
    return SWEEP_MS;
  }

  /**
   * Starts workers of webhooks it was not told about, updates those changed by other processes, stops those removed.
   */
  async #takeUpOthers(): Promise<void> {
    const gone = new Set(this.#workers.keys());
    const { holder, kv } = this.#context;
    for await (const row of holder.rows()) {
      gone.delete(row.id);
      // It may have been removed since the rows were listed.
      if (!this.#workers.has(row.id) && (await kv.get(WEBHOOK.keyOf(WEBHOOK.nameOf(row)))).value === null) continue;
      if (!this.#code.made()) {
        await this.#code.need();
        // From the first row on: they may have changed meanwhile.
        return await this.#takeUpOthers();
      }
      this.changed(row);
    }
    await Promise.all([...gone].map((webhookId) => this.removed(webhookId)));
  }

  #begin(webhook: WebhookRow): void {
    const store = this.#context.holder.storeOf(WEBHOOK.nameOf(webhook));
    const code = this.#code.made();
    if (store === null || code === null) return;
    const worker = new code.Worker({ ...this.#context, kv: store, places: this.#places }, webhook);
    this.#workers.set(webhook.id, { worker, updatedAt: webhook.updatedAt });
    void worker.start();
  }
}
