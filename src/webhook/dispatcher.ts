/** Runs one worker for every webhook, from boot to stop, and follows what owners change. */
import { webhookKeys } from "./rows.ts";
import type { WebhookRow } from "./webhook.ts";
import { startWorker, WEBHOOK_TOPIC, type Worker, type WorkerContext } from "./worker.ts";

/** So often all workers look for work, and the rows are looked at for more workers: a wake-up may have been missed. */
const SWEEP_MS = 30_000;
/** What is on its way at a stop may end within this; the rest goes out again at the next start, under the same id. */
const STOP_GRACE_MS = 3_000;

export interface Dispatcher {
  /** Takes up what is waiting (promise 4). */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** The webhook was created or changed. */
  changed(webhook: WebhookRow): void;
  /** The webhook was removed; resolves when nothing of it is written any more. */
  removed(webhookId: string): Promise<void>;
  /** Something is due for the webhook that its worker cannot know of. */
  wake(webhookId: string): void;
}

export function makeDispatcher(context: WorkerContext): Dispatcher {
  const { kv, bell, runtime } = context;
  const workers = new Map<string, Worker>();
  let running = false;
  let cancelSweep = () => {};
  let deafen = () => {};
  let sweeping = Promise.resolve();

  function sweepLater(): void {
    if (!running) return;
    cancelSweep = runtime.clock.after(SWEEP_MS, () => {
      for (const worker of workers.values()) worker.wake();
      sweeping = takeUpOthers().catch((error) => {
        runtime.log.warn({ err: error }, "the webhooks could not be looked at");
      }).then(sweepLater);
    });
  }

  /** Begins with webhooks that nobody told of, like one whose commit was written and seemed to have failed. */
  async function takeUpOthers(): Promise<void> {
    for await (const { key, value: { id } } of kv.list({ prefix: webhookKeys.webhooks() })) {
      if (workers.has(id)) continue;
      // Read again: it may have been removed, with its worker, since the rows were listed.
      const { value: row } = await kv.get<WebhookRow>(key);
      if (row && !workers.has(id)) changed(row);
    }
  }

  function changed(webhook: WebhookRow): void {
    if (!running) return;
    const worker = workers.get(webhook.id);
    if (worker) worker.update(webhook);
    else workers.set(webhook.id, startWorker(context, webhook));
  }

  const wake = (webhookId: string) => workers.get(webhookId)?.wake();

  return {
    async start() {
      if (running) return;
      running = true;
      deafen = bell.hear(WEBHOOK_TOPIC, (topic) => wake(topic.slice(WEBHOOK_TOPIC.length)));
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
      const stopping = [...workers.values()].map((worker) => worker.stop(STOP_GRACE_MS));
      workers.clear();
      await Promise.all(stopping);
    },

    changed,

    async removed(webhookId) {
      const worker = workers.get(webhookId);
      workers.delete(webhookId);
      await worker?.stop(0);
    },

    wake,
  };
}
