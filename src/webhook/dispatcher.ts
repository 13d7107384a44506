/** Runs one worker for every webhook, from boot to stop, and follows what owners change. */
import { Loop } from "../base/loop.ts";
import type { Service } from "../base/service.ts";
import { Turns } from "../base/turns.ts";
import { CHANGED_TOPIC, soleWebhooks, WEBHOOK_TOPIC, type WebhookKeeper, type WebhookOwnership } from "./ownership.ts";
import type { WebhookRow } from "./webhook.ts";
import { Worker, type WorkerContext } from "./worker.ts";

/** How often all workers look for work, and the rows are searched for more webhooks: a wake-up may have been missed. */
const SWEEP_MS = 30_000;

/** Attempts at the same time: of all accounts, and of one, which a single webhook may use up by itself. */
const WORKING = { inAll: 128, each: 32 };
/** To endpoints whose last attempt failed: most of these wait for 10 s, or are refused as fast as they are made. */
const FAILING = { inAll: 32, each: 8 };

/** Takes up what is waiting when it starts (promise 4). */
export interface Dispatcher extends Service, WebhookKeeper {
  /** Webhooks have become this process's: their workers begin. */
  taken(): void;
  /** The webhook is another process's: resolves when its worker here writes no more. */
  drop(webhookId: string): Promise<void>;
  /** How many attempts wait for their account's turn. */
  waiting(): number;
}

interface DispatcherContext extends Omit<WorkerContext, "places"> {
  /** All webhooks are this process's unless given. */
  ownership?: WebhookOwnership;
}

export function makeDispatcher(context: DispatcherContext): Dispatcher {
  const { kv, bell, runtime, ownership = soleWebhooks(kv) } = context;
  const places = { working: new Turns(WORKING), failing: new Turns(FAILING) };
  const workers = new Map<string, { worker: Worker; updatedAt: number }>();
  let running = false;
  let deafen = () => {};

  const sweeps = new Loop(runtime.clock, async () => {
    for (const { worker } of workers.values()) worker.wake();
    try {
      await takeUpOthers();
    } catch (error) {
      runtime.log.warn({ err: error }, "the webhooks could not be looked at");
    }
    return SWEEP_MS;
  });

  /** Begins with webhooks that were not reported, follows those that another process changed, ends those it removed. */
  async function takeUpOthers(): Promise<void> {
    const gone = new Set(workers.keys());
    for await (const row of ownership.rows()) {
      gone.delete(row.id);
      const known = workers.get(row.id);
      if (!known || row.updatedAt > known.updatedAt) changed(row);
    }
    await Promise.all([...gone].map(removed));
  }

  function begin(webhook: WebhookRow): void {
    const store = ownership.storeOf(webhook);
    if (store === null) return;
    const worker = new Worker({ ...context, kv: store, places }, webhook);
    workers.set(webhook.id, { worker, updatedAt: webhook.updatedAt });
    void worker.start();
  }

  function changed(webhook: WebhookRow): void {
    if (!running) return;
    const known = workers.get(webhook.id);
    if (!known) return begin(webhook);
    known.updatedAt = webhook.updatedAt;
    known.worker.update(webhook);
  }

  const wake = (webhookId: string) => workers.get(webhookId)?.worker.wake();

  async function removed(webhookId: string): Promise<void> {
    workers.get(webhookId)?.worker.drop();
    await drop(webhookId);
  }

  async function drop(webhookId: string): Promise<void> {
    const known = workers.get(webhookId);
    workers.delete(webhookId);
    await known?.worker.stop();
  }

  return {
    async start() {
      if (running) return;
      running = true;
      sweeps.start(SWEEP_MS);
      const deafenWake = bell.hear(WEBHOOK_TOPIC, (topic) => {
        // Rings of other processes may have been lost: any of them may have been meant.
        if (topic === WEBHOOK_TOPIC) { for (const { worker } of workers.values()) worker.wake(); }
        else wake(topic.slice(WEBHOOK_TOPIC.length));
      });
      const deafenChanged = bell.hear(CHANGED_TOPIC, () => void sweeps.now());
      deafen = () => {
        deafenWake();
        deafenChanged();
      };
      await takeUpOthers();
    },

    async stop() {
      running = false;
      deafen();
      await sweeps.stop();
      const stopping = [...workers.values()].map(({ worker }) => worker.stop());
      workers.clear();
      await Promise.all(stopping);
    },

    // On one machine nothing has to be taken up: whoever removes waits for its worker.
    offer() {},
    withdraw: () => Promise.resolve(),
    changed,
    removed,
    wake,
    drop,
    taken: () => void sweeps.now(),

    waiting: () => places.working.waiting + places.failing.waiting,
  };
}
