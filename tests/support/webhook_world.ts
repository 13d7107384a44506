/** Event log, webhooks and their workers on a store in memory and a manual clock, with real requests on loopback. */
import type { Resolve } from "../../src/egress/resolve.ts";
import { makeSafeFetch } from "../../src/egress/safe_fetch.ts";
import { readAllowList } from "../../src/egress/vetting.ts";
import type { NewEvent } from "../../src/event/event.ts";
import { type EventLog, makeEventLog } from "../../src/event/event_log.ts";
import { Change } from "../../src/store/kv.ts";
import { makeSeal, sealKey } from "../../src/store/seal.ts";
import { soleHolder } from "../../src/cluster/holder.ts";
import { WEBHOOK } from "../../src/webhook/rows.ts";
import { urlTarget } from "../../src/webhook/url_target.ts";
import { Dispatcher } from "../../src/webhook/dispatcher.ts";
import type { Delivery } from "../../src/webhook/webhook.ts";
import { formatsOn } from "../../src/cloud/formats.ts";
import { makeWebhooks, type Webhooks } from "../../src/webhook/webhooks.ts";
import { type DeliveryLog, makeDeliveryLog } from "../../src/webhook/delivery_log.ts";
import { testBell } from "./bell.ts";
import { MemoryDisk, MemoryKv } from "./memory_kv.ts";
import { type Answer, Receiver } from "./receiver.ts";
import { type TestRuntime, testRuntime } from "./runtime.ts";
import { until } from "./until.ts";

export const ACCOUNT = "acc_1";
export const SESSION = { id: "ses_1", name: "Front desk" };

/** What a webhook for every usual event of every session says. */
export const ALL_EVENTS = { events: null, sessionId: null };

export interface WorldOptions {
  resolve?: Resolve;
  caCerts?: string[];
}

export class WebhookWorld {
  readonly disk = new MemoryDisk();
  readonly runtime: TestRuntime = testRuntime();
  readonly #options: WorldOptions;
  kv!: MemoryKv;
  events!: EventLog;
  webhooks!: Webhooks;
  deliveryLog!: DeliveryLog;
  dispatcher!: Dispatcher;

  private constructor(options: WorldOptions) {
    this.#options = options;
  }

  static async start(options: WorldOptions = {}): Promise<WebhookWorld> {
    const world = new WebhookWorld(options);
    await world.boot();
    return world;
  }

  /** A process on the disk as it is. */
  async boot(): Promise<void> {
    const { runtime } = this;
    const kv = this.kv = new MemoryKv(this.disk);
    const bell = testBell(runtime);
    const events = this.events = makeEventLog({ kv, bell, runtime });
    const seal = makeSeal(sealKey("a secret of the test"), runtime.random);
    const allow = readAllowList(["127.0.0.0/8"]);
    const safeFetch = makeSafeFetch({ clock: runtime.clock, allow, ...this.#options });
    const target = urlTarget({ safeFetch, runtime });
    const dispatcher = this.dispatcher = new Dispatcher({
      kv,
      events,
      target,
      seal,
      runtime,
      bell,
      formats: formatsOn(kv),
      holder: soleHolder(kv, WEBHOOK),
    });
    const sessions = { list: () => Promise.resolve([SESSION]) };
    this.webhooks = makeWebhooks({ kv, events, target, seal, runtime, owner: dispatcher, claims: null, sessions });
    this.deliveryLog = makeDeliveryLog({ kv, clock: runtime.clock, bell });
    await dispatcher.start();
  }

  /** The process is gone in the middle of its work; what it would have written is not written. */
  async crash(): Promise<void> {
    this.kv.commitsLeft = 0;
    const stopping = this.dispatcher.stop();
    await this.runtime.clock.advance(5_000);
    await stopping;
  }

  async stop(): Promise<void> {
    const stopping = this.dispatcher.stop();
    await this.runtime.clock.advance(5_000);
    await stopping;
  }

  /** Logs events, in one commit each. */
  async log(...events: NewEvent[]): Promise<string[]> {
    const ids: string[] = [];
    for (const event of events) {
      const change = new Change();
      const appended = this.events.append(change, event);
      await this.kv.commit(change);
      this.events.committed(event.accountId);
      ids.push(appended.id!);
    }
    return ids;
  }

  async deliveries(webhookId: string): Promise<Delivery[]> {
    const query = { status: null, before: null, limit: 10_000 };
    return (await this.deliveryLog.page(ACCOUNT, webhookId, query)).deliveries;
  }

  /** Waits until the webhook's log is as the condition says. */
  async until(webhookId: string, condition: (deliveries: Delivery[]) => boolean): Promise<Delivery[]> {
    let seen: Delivery[] = [];
    const look = async () => condition(seen = await this.deliveries(webhookId));
    await until(look, "the delivery log").catch((error) => {
      throw new Error(`${error.message}: ${JSON.stringify(seen)}`);
    });
    return seen;
  }

  /** Moves time, attempt by attempt, until nothing is pending any more. */
  async exhaust(webhookId: string): Promise<Delivery[]> {
    for (;;) {
      const deliveries = await this.deliveries(webhookId);
      const due = deliveries.map(({ nextAttemptAt }) => nextAttemptAt).filter((at) => at !== null);
      if (due.length === 0) return deliveries;
      const attempts = deliveries.flatMap((delivery) => delivery.attempts).length;
      await this.runtime.clock.advance(Math.max(0, Math.min(...due) - this.runtime.clock.now()));
      await this.until(webhookId, (now) => now.flatMap((delivery) => delivery.attempts).length > attempts);
    }
  }
}

/** An incoming text, the nth of its chat. */
export function textEvent(number: number, { chat = "4915100@s.whatsapp.net", session = SESSION } = {}): NewEvent {
  return {
    event: "message.received",
    accountId: ACCOUNT,
    sessionId: session.id,
    sessionName: session.name,
    data: {
      from: chat,
      number: "4915100",
      pushName: "Ada",
      messageId: `3EB0${number}`,
      timestamp: 1_768_478_400 + number,
      type: "conversation",
      text: `text ${number}`,
      chat,
      isForwarded: false,
    },
  };
}

/** A world, and a receiver that answers so (200 unless given), with a webhook on it. */
export async function webhookStage({ answer, ...options }: WorldOptions & { answer?: Answer } = {}) {
  const world = await WebhookWorld.start(options);
  const receiver = await Receiver.start(answer);
  const { webhook, secret } = await world.webhooks.create(ACCOUNT, { url: receiver.url, ...ALL_EVENTS });
  return {
    world,
    receiver,
    webhook,
    secret,
    async [Symbol.asyncDispose]() {
      await world.stop();
      await receiver.close();
    },
  };
}
