/** Runs one worker per webhook and applies the owners' changes. */
import type { Service } from "../base/service.ts";
import { Loop, onDemand } from "../base/single_flight.ts";
import { FairSemaphore } from "../base/fair_semaphore.ts";
import type { Change, Kv } from "../store/kv.ts";
import { CHANGED_TOPIC, WEBHOOK_TOPIC, webhookKeys } from "./rows.ts";
import type { WebhookRow } from "./webhook.ts";
import type { Worker, WorkerContext } from "./worker.ts";

/** How often all workers are woken and the rows are checked for webhooks without a worker, in case a ring was lost. */
const SWEEP_MS = 30_000;

/** Concurrent attempts in total, and of one account, which a single webhook may use up by itself. */
const WORKING = { inAll: 128, each: 32 };
/** The same for endpoints whose last attempt failed: most of these attempts time out after 10 s or fail at once. */
const FAILING = { inAll: 32, each: 8 };

/**
 * Which webhooks this process works for, and through which store it writes for each (promise 9). On one machine it owns
 * all of them; on a shared store each webhook has a lease.
 */
export interface WebhookOwnership {
  /** Lists the rows of the webhooks owned by this process. */
  rows(): AsyncIterable<WebhookRow>;
  /** Returns the store through which the webhook's owner writes; null if this process does not own it. */
  storeOf(webhook: Pick<WebhookRow, "accountId" | "id">): Kv | null;
}

/** How HTTP notifies the owner of a webhook, in this process or another. */
export interface WebhookOwner {
  /** Adds to the commit that creates a webhook what lets a process take it. */
  offer(change: Change, webhook: Pick<WebhookRow, "accountId" | "id">): void;
  /** Adds to the commit that removes a webhook what makes all later writes for it fail. */
  withdraw(change: Change, webhook: Pick<WebhookRow, "accountId" | "id">): Promise<void>;
  /** Called when the webhook was created or changed. */
  changed(webhook: WebhookRow): void;
  /** Called when the webhook was removed; resolves when nothing is written for it any longer. */
  removed(webhookId: string): Promise<void>;
  /** Called when an attempt is due that the webhook's worker does not know of. */
  wake(webhookId: string): void;
}

interface DispatcherContext extends Omit<WorkerContext, "places"> {
  /** By default this process owns all webhooks. */
  ownership?: WebhookOwnership;
}

/** Resumes pending deliveries at its start (promise 4). */
export class Dispatcher implements Service, WebhookOwner {
  readonly #context: DispatcherContext;
  readonly #ownership: WebhookOwnership;
  readonly #places = { working: new FairSemaphore(WORKING), failing: new FairSemaphore(FAILING) };
  /** Loaded with the first webhook. */
  readonly #code = onDemand(() => import("./worker.ts"));
  readonly #workers = new Map<string, { worker: Worker; updatedAt: number }>();
  readonly #sweeps: Loop;
  readonly #deafen: (() => void)[] = [];
  #running = false;

  constructor(context: DispatcherContext) {
    this.#context = context;
    this.#ownership = context.ownership ?? soleWebhooks(context.kv);
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
        else this.wake(topic.slice(WEBHOOK_TOPIC.length));
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

  /** On one machine there are no leases to offer. */
  offer(): void {}

  /** Nothing to write: `removed` stops the worker itself. */
  withdraw(): Promise<void> {
    return Promise.resolve();
  }

  changed(webhook: WebhookRow): void {
    if (!this.#running) return;
    const known = this.#workers.get(webhook.id);
    if (!known) return this.#code.made() ? this.#begin(webhook) : this.taken();
    known.updatedAt = webhook.updatedAt;
    known.worker.update(webhook);
  }

  async removed(webhookId: string): Promise<void> {
    this.#workers.get(webhookId)?.worker.drop();
    await this.drop(webhookId);
  }

  wake(webhookId: string): void {
    this.#workers.get(webhookId)?.worker.wake();
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
      this.#context.runtime.log.warn({ err: error }, "the webhooks could not be looked at");
    }
    return SWEEP_MS;
  }

  /**
   * Starts workers of webhooks it was not told about, updates those changed by other processes, stops those removed.
   */
  async #takeUpOthers(): Promise<void> {
    const gone = new Set(this.#workers.keys());
    for await (const row of this.#ownership.rows()) {
      gone.delete(row.id);
      const known = this.#workers.get(row.id);
      if (known && row.updatedAt <= known.updatedAt) continue;
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
    const store = this.#ownership.storeOf(webhook);
    const code = this.#code.made();
    if (store === null || code === null) return;
    const worker = new code.Worker({ ...this.#context, kv: store, places: this.#places }, webhook);
    this.#workers.set(webhook.id, { worker, updatedAt: webhook.updatedAt });
    void worker.start();
  }
}

/** Returns the ownership of a process that owns every webhook. */
function soleWebhooks(kv: Kv): WebhookOwnership {
  return {
    async *rows() {
      for await (const { value: { accountId, id } } of kv.list({ prefix: webhookKeys.webhooks() })) {
        // Read again: it may have been removed, with its worker, since the rows were listed.
        const { value } = await kv.get(webhookKeys.webhook(accountId, id));
        if (value) yield value;
      }
    },
    storeOf: () => kv,
  };
}
