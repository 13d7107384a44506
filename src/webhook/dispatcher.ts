/** Runs one worker for every webhook, from boot to stop, and follows what owners change. */
import type { Service } from "../base/service.ts";
import { Turns } from "../base/turns.ts";
import { webhookKeys } from "./rows.ts";
import type { WebhookRow } from "./webhook.ts";
import { makeWorker, WEBHOOK_TOPIC, type Worker, type WorkerContext } from "./worker.ts";

/** So often all workers look for work, and the rows are looked at for more workers: a wake-up may have been missed. */
const SWEEP_MS = 30_000;

/** Attempts at the same time: of all accounts, and of one, which is what a single webhook may have by itself. */
const WORKING = { inAll: 128, each: 32 };
/** To endpoints whose last attempt failed: most of these wait for 10 s, or are refused as fast as they are made. */
const FAILING = { inAll: 32, each: 8 };

/** From its start it takes up what is waiting (promise 4). */
export interface Dispatcher extends Service {
  /** The webhook was created or changed. */
  changed(webhook: WebhookRow): void;
  /** The webhook was removed; resolves when nothing of it is written any more. */
  removed(webhookId: string): Promise<void>;
  /** Something is due for the webhook that its worker cannot know of. */
  wake(webhookId: string): void;
  /** How many attempts wait for their account's turn. */
  waiting(): number;
}

export function makeDispatcher(context: Omit<WorkerContext, "places">): Dispatcher {
  const { kv, bell, runtime } = context;
  const places = { working: new Turns(WORKING), failing: new Turns(FAILING) };
  const workers = new Map<string, Worker>();
  let running = false;
  let cancelSweep = () => {};
  let deafen = () => {};
  let sweeping = Promise.resolve();

  function sweepLater(): void {
    if (!running) return;
    cancelSweep = runtime.clock.after(SWEEP_MS, () => {
      sweeping = sweep();
    });
  }

  async function sweep(): Promise<void> {
    for (const worker of workers.values()) worker.wake();
    try {
      await takeUpOthers();
    } catch (error) {
      runtime.log.warn({ err: error }, "the webhooks could not be looked at");
    }
    sweepLater();
  }

  /** Begins with webhooks that were not reported, like one whose commit was written and seemed to have failed. */
  async function takeUpOthers(): Promise<void> {
    for await (const { key, value: { id } } of kv.list({ prefix: webhookKeys.webhooks() })) {
      if (workers.has(id)) continue;
      // Read again: it may have been removed, with its worker, since the rows were listed.
      const { value: row } = await kv.get<WebhookRow>(key);
      if (row && !workers.has(id)) changed(row);
    }
  }

  function begin(webhook: WebhookRow): void {
    const worker = makeWorker({ ...context, places }, webhook);
    workers.set(webhook.id, worker);
    void worker.start();
  }

  function changed(webhook: WebhookRow): void {
    if (!running) return;
    const worker = workers.get(webhook.id);
    if (worker) worker.update(webhook);
    else begin(webhook);
  }

  const wake = (webhookId: string) => workers.get(webhookId)?.wake();

  return {
    async start() {
      if (running) return;
      running = true;
      deafen = bell.hear(WEBHOOK_TOPIC, (topic) => {
        if (topic === WEBHOOK_TOPIC) { for (const worker of workers.values()) worker.wake(); }
        else wake(topic.slice(WEBHOOK_TOPIC.length));
      });
      for await (const { value } of kv.list({ prefix: webhookKeys.webhooks() })) {
        if (!workers.has(value.id)) changed(value);
      }
      sweepLater();
    },

    async stop() {
      running = false;
      deafen();
      cancelSweep();
      await sweeping;
      const stopping = [...workers.values()].map((worker) => worker.stop());
      workers.clear();
      await Promise.all(stopping);
    },

    changed,

    async removed(webhookId) {
      const worker = workers.get(webhookId);
      workers.delete(webhookId);
      worker?.drop();
      await worker?.stop();
    },

    wake,

    waiting: () => places.working.waiting + places.failing.waiting,
  };
}
