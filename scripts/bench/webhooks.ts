/**
 * Webhook deliveries with durable state, against bare sign-and-post: the same signature, the same HTTP client and the
 * same number of requests at a time to the same receiver, and nothing written down. First how many a second when much
 * waits, then how long after its commit an event is first attempted when they come one by one.
 */
import { join } from "node:path";
import { openData } from "../../src/engines.ts";
import { formatsOn } from "../../src/cloud/formats.ts";
import { makeSafeFetch } from "../../src/egress/safe_fetch.ts";
import { readAllowList } from "../../src/egress/vetting.ts";
import type { LoggedEvent, NewEvent } from "../../src/event/event.ts";
import { makeEventLog } from "../../src/event/event_log.ts";
import { makeLog } from "../../src/ops/log.ts";
import { type Runtime, systemRuntime } from "../../src/runtime.ts";
import { openDenoKvBell } from "../../src/store/deno_kv/bell.ts";
import { Change } from "../../src/store/kv.ts";
import { soleHolder } from "../../src/cluster/holder.ts";
import { WEBHOOK } from "../../src/webhook/rows.ts";
import { urlTarget } from "../../src/webhook/url_target.ts";
import { Dispatcher } from "../../src/webhook/dispatcher.ts";
import { palomaFormat } from "../../src/webhook/format.ts";
import { makeSecret } from "../../src/webhook/signature.ts";
import { makeWebhooks } from "../../src/webhook/webhooks.ts";
import { type Child, startChild, wallClock } from "./child.ts";
import { type Bench, type BenchOptions, median, percentile, type Result } from "./measure.ts";
import type { Arrivals, ArrivalsWanted, ReceiverReady } from "./receiver.ts";

const ACCOUNT = "acc_01kf0m3e4v8s2q6w9x1y5z7abc";
const SESSION = { id: "ses_01kf0m3e4v8s2q6w9x1y5z7abc", name: "Front desk" };
/** First attempts at a time: the limit of one webhook's worker. */
const AT_ONCE = 24;
const EVENTS_A_SECOND = 200;
const FLOW_MS = 5_000;

export const webhooks: Bench = {
  name: "webhooks",
  about: "deliveries a second and time to the first attempt, against bare sign-and-post",
  async run(options) {
    const folder = await Deno.makeTempDir({ prefix: "paloma-bench-" });
    const receiver = await startChild<ReceiverReady>("./receiver.ts", null);
    const runtime = systemRuntime(makeLog("error"));
    try {
      const rates: { subject: number; raw: number }[] = [];
      const delays: { subject: number[]; raw: number[] }[] = [];
      for (let i = 0; i < options.rounds; i++) {
        const stage: Stage = { receiver, runtime, dataDir: join(folder, String(i)) };
        const rate = { raw: await rawRate(stage, options), subject: await durableRate(stage, options) };
        const delay = { raw: await rawDelays(stage), subject: await durableDelays(stage) };
        rates.push(rate);
        delays.push(delay);
        options.report(
          `round ${i + 1}: ${rate.subject.toFixed(0)}/s against ${rate.raw.toFixed(0)}/s; first attempt p99 ` +
            `${percentile(delay.subject, 99).toFixed(1)} ms against ${percentile(delay.raw, 99).toFixed(1)} ms`,
        );
      }
      return conclude(rates, delays);
    } finally {
      await receiver.stop();
      await Deno.remove(folder, { recursive: true });
    }
  },
};

interface Stage {
  receiver: Child<ReceiverReady>;
  runtime: Runtime;
  dataDir: string;
}

function conclude(
  rates: readonly { subject: number; raw: number }[],
  delays: readonly { subject: number[]; raw: number[] }[],
): Result[] {
  const p99 = delays.map(({ subject, raw }) => ({ subject: percentile(subject, 99), raw: percentile(raw, 99) }));
  const of = (pairs: readonly { subject: number; raw: number }[], digits: number, unit: string) =>
    (["subject", "raw"] as const).map((side) => median(pairs.map((pair) => pair[side])).toFixed(digits) + unit)
      .join(" against ");
  return [
    {
      name: "deliveries a second / bare sign-and-post",
      ratios: rates.map(({ subject, raw }) => subject / raw),
      goal: { atLeast: 0.4 },
      detail: of(rates, 0, "/s"),
    },
    {
      name: "p99 of commit to first attempt / (bare p99 + 100 ms)",
      ratios: p99.map(({ subject, raw }) => subject / (raw + 100)),
      goal: { atMost: 1 },
      detail: of(p99, 1, " ms"),
    },
  ];
}

function client({ runtime }: Stage) {
  return makeSafeFetch({ clock: runtime.clock, allow: readAllowList(["127.0.0.0/8"]) });
}

/** Signs and posts one event; nothing is written down. */
function makePost(stage: Stage): (number: number) => Promise<void> {
  const target = urlTarget({ safeFetch: client(stage), runtime: stage.runtime });
  const secret = makeSecret(stage.runtime.random);
  const { signal } = new AbortController();
  return async (number) => {
    const event = { ...textEvent(number), id: `evt_raw${number}`, createdAt: 0 } as LoggedEvent;
    const { url } = stage.receiver.ready;
    const outcome = await target.attempt({
      url,
      open: () => ({ secrets: [secret], headers: {} }),
      event,
      body: await palomaFormat.bodyOf(event),
      format: palomaFormat,
      signal,
    });
    if (outcome.kind !== "delivered") throw new Error("the receiver did not take a delivery");
  };
}

function arrivals({ receiver }: Stage, count: number): Promise<Arrivals> {
  const wanted: ArrivalsWanted = { count };
  return receiver.ask<Arrivals>(wanted);
}

/** Deliveries a second from the first to the last arrival. */
function rateOf({ at }: Arrivals): number {
  const times = Object.values(at);
  return (times.length - 1) / (Math.max(...times) - Math.min(...times)) * 1000;
}

async function rawRate(stage: Stage, { deliveries }: BenchOptions): Promise<number> {
  const post = makePost(stage);
  let next = 0;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (next < deliveries) await post(next++);
  }));
  return rateOf(await arrivals(stage, deliveries));
}

async function rawDelays(stage: Stage): Promise<number[]> {
  const post = makePost(stage);
  const began = await flow((number) => {
    const at = wallClock();
    void post(number);
    return Promise.resolve({ id: `evt_raw${number}`, at });
  });
  return await delaysSince(stage, began);
}

/** Event log, webhook and its worker, as the gateway wires them. */
async function openDurable(stage: Stage) {
  const { runtime, dataDir } = stage;
  const { kv, seal, close } = await openData({ dataDir, secretKey: null }, runtime);
  const bell = await openDenoKvBell({ runtime });
  const events = makeEventLog({ kv, bell, runtime });
  const target = urlTarget({ safeFetch: client(stage), runtime });
  const dispatcher = new Dispatcher({
    kv,
    events,
    runtime,
    target,
    seal,
    bell,
    formats: formatsOn(kv),
    holder: soleHolder(kv, WEBHOOK),
  });
  const sessions = { list: () => Promise.resolve([SESSION]) };
  const hooks = makeWebhooks({ kv, events, target, seal, runtime, owner: dispatcher, claims: null, sessions });
  const { url } = stage.receiver.ready;
  const { webhook } = await hooks.create(ACCOUNT, { url, events: ["message.received"], sessionId: null });
  return {
    dispatcher,
    /** Resolves to the event's id when it is committed. */
    async log(number: number): Promise<string> {
      const change = new Change();
      const appended = events.append(change, textEvent(number));
      await kv.commit(change);
      events.committed(ACCOUNT);
      return appended.id!;
    },
    async close() {
      await dispatcher.stop();
      await bell.close();
      // The next measurement on this folder makes a webhook of its own.
      await hooks.remove(ACCOUNT, webhook.id);
      close();
    },
  };
}

async function durableRate(stage: Stage, { deliveries }: BenchOptions): Promise<number> {
  const { dispatcher, log, close } = await openDurable(stage);
  await Promise.all(Array.from({ length: deliveries }, (_, number) => log(number)));
  await dispatcher.start();
  const rate = rateOf(await arrivals(stage, deliveries));
  await close();
  return rate;
}

async function durableDelays(stage: Stage): Promise<number[]> {
  const { dispatcher, log, close } = await openDurable(stage);
  await dispatcher.start();
  const began = await flow(async (number) => {
    const id = await log(number);
    return { id, at: wallClock() };
  });
  const delays = await delaysSince(stage, began);
  await close();
  return delays;
}

/** Emits events at a steady rate; resolves to when each was committed. */
async function flow(
  begin: (number: number) => Promise<{ id: string; at: number }>,
): Promise<{ id: string; at: number }[]> {
  const begun: Promise<{ id: string; at: number }>[] = [];
  const start = performance.now();
  for (let elapsed = 0; elapsed < FLOW_MS; elapsed = performance.now() - start) {
    while (begun.length < elapsed * EVENTS_A_SECOND / 1000) begun.push(begin(begun.length));
    await new Promise((resolve) => setTimeout(resolve, 1000 / EVENTS_A_SECOND));
  }
  return await Promise.all(begun);
}

async function delaysSince(stage: Stage, began: readonly { id: string; at: number }[]): Promise<number[]> {
  const { at } = await arrivals(stage, began.length);
  return began.map((event) => at[event.id]! - event.at);
}

/** An incoming text, each from another chat, so that there are as many lanes as events. */
function textEvent(number: number): NewEvent {
  return {
    event: "message.received",
    accountId: ACCOUNT,
    sessionId: SESSION.id,
    sessionName: SESSION.name,
    data: {
      from: `${4915550000000 + number}@s.whatsapp.net`,
      number: String(4915550000000 + number),
      pushName: "Ada",
      messageId: `3EB0${String(number).padStart(18, "0")}`,
      timestamp: 1_768_478_400 + number,
      type: "conversation",
      text: "When does my parcel arrive?",
      chat: `${4915550000000 + number}@s.whatsapp.net`,
      isForwarded: false,
    },
  };
}
