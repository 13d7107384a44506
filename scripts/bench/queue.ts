/**
 * The queue with 100,000 messages scheduled and as many waiting, against an empty one: how long a send takes to be
 * accepted; and against one with a hundredth of them: how long the head takes to be found. Both stores are open at once
 * and take turns, so that they meet the same conditions. Then 200 lines, each with messages for later: how late they leave, on the real bell.
 */
import { join } from "node:path";
import { LINE_TOPIC } from "../../src/line/live.ts";
import type { Runner } from "../../src/line/runner/runner.ts";
import { QueueHead } from "../../src/message/queue/head.ts";
import { Lanes } from "../../src/message/queue/lanes.ts";
import { makeLog } from "../../src/ops/log.ts";
import { type Runtime, systemRuntime } from "../../src/runtime.ts";
import { openDenoKvBell } from "../../src/store/deno_kv/bell.ts";
import { openDenoKv } from "../../src/store/deno_kv/deno_kv.ts";
import type { Kv } from "../../src/store/kv.ts";
import { makeRunners } from "../../tests/support/bare_runner.ts";
import { FakeNetwork } from "../../tests/support/fake_network.ts";
import { aBulk, aLine, aPlan, aSend, type SendWorld, sendWorld } from "../../tests/support/send_world.ts";
import { type Bench, type BenchOptions, median, percentile, type Result } from "./measure.ts";

const BULK = 10_000;
const FEWER = 100;
const SAMPLES = 1_000;
const DAY_MS = 24 * 3_600_000;
const LINES = 200;
const DUE_A_LINE = 5;
const DUE_WITHIN_MS = 20_000;
const MOST_LATE_MS = 100;

export const queue: Bench = {
  name: "queue",
  about: "a queue with a backlog against an empty one, and how late scheduled messages leave",
  async run(options) {
    const folder = await Deno.makeTempDir({ prefix: "paloma-bench-" });
    const runtime = systemRuntime(makeLog("error"));
    const open = (name: string) => openDenoKv(join(folder, name), { runtime });
    const [empty, few] = await Promise.all([open("empty.db"), open("few.db")]);
    const [full, lines] = await Promise.all([open("full.db"), open("lines.db")]);
    try {
      return [...await compare({ empty, few, full }, runtime, options), await measureLateness(lines, runtime, options)];
    } finally {
      for (const kv of [empty, few, full, lines]) kv.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
};

async function compare(
  stores: Record<"empty" | "few" | "full", Kv>,
  runtime: Runtime,
  { rounds, backlog, report }: BenchOptions,
): Promise<Result[]> {
  // The world of the unit tests needs no more of its runtime than the system's offers.
  const world = (kv: Kv) => sendWorld(kv, runtime);
  const [empty, few, full] = [world(stores.empty), world(stores.few), world(stores.full)];
  const fewer = Math.ceil(backlog / FEWER);
  for (const [{ accept }, total] of [[few, fewer], [full, backlog]] as const) {
    for (let left = total, day = 1; left > 0; left -= BULK, day++) {
      const count = Math.min(left, BULK);
      await accept(aBulk(count, { sendAt: runtime.clock.now() + day * DAY_MS }));
      await accept(aBulk(count));
    }
  }
  report(`${backlog} messages are scheduled and ${backlog} wait in the one, ${fewer} in another, none in the third`);
  const accepts: Pair[] = [];
  const heads: Pair[] = [];
  for (let round = 0; round < rounds; round++) {
    accepts.push(await inTurn((of) => accept(of === "full" ? full : empty, runtime)));
    heads.push(await inTurn((of) => findHead(of === "full" ? stores.full : stores.few, runtime)));
    report(`round ${round + 1}: accept ${shown(accepts.at(-1)!)}, head ${shown(heads.at(-1)!)}`);
  }
  return [
    {
      name: "accepted, empty queue / with the backlog (median)",
      ratios: accepts.map(({ less, full }) => median(less) / median(full)),
      goal: { atLeast: 0.9 },
      detail: shown(accepts.at(-1)!),
    },
    {
      name: `head found, with the backlog / a ${FEWER}th of it (median)`,
      ratios: heads.map(({ less, full }) => median(full) / median(less)),
      goal: { atMost: 1.5 },
      detail: shown(heads.at(-1)!),
    },
  ];
}

/** Samples of the queue with the backlog, and of the one with less. */
type Pair = Record<"less" | "full", number[]>;

async function inTurn(work: (queue: keyof Pair) => Promise<unknown>): Promise<Pair> {
  const pair: Pair = { less: [], full: [] };
  for (let i = 0; i < SAMPLES; i++) {
    // Neither is always the one that comes after the other's flush.
    for (const queue of i % 2 ? (["less", "full"] as const) : (["full", "less"] as const)) {
      const began = performance.now();
      await work(queue);
      pair[queue].push(performance.now() - began);
    }
  }
  return pair;
}

function shown({ less, full }: Pair): string {
  const micros = (samples: number[]) => `${Math.round(median(samples) * 1000)} µs`;
  return `${micros(full)} against ${micros(less)}`;
}

function accept(world: SendWorld<Runtime>, { random }: Runtime): Promise<unknown> {
  const to = String(34_610_000_000 + random.between(0, 9_999_999));
  return world.accept(aSend({ items: [{ to, content: { kind: "text", text: "hello" } }] }));
}

/** What the runner does to find the message that leaves next. */
async function findHead(kv: Kv, { clock }: Runtime): Promise<void> {
  await new Lanes(kv, aLine().id).release(clock.now(), () => "cold");
  await new QueueHead(kv, { lineId: aLine().id, accountId: "acc_1" }).next({
    laneOf: () => "cold",
    oldestBefore: null,
    behind: null,
  });
}

/** Lines without a pause, each with messages for times that are spread over some seconds. */
async function measureLateness(kv: Kv, runtime: Runtime, { report }: BenchOptions): Promise<Result> {
  const bell = await openDenoKvBell({ runtime });
  const network = new FakeNetwork(runtime.clock);
  const startRunner = makeRunners({ kv, runtime, bell, network });
  const runners = new Map<string, Runner>();
  const plan = aPlan();
  const ids = Array.from({ length: LINES }, (_, i) => `ses_${i}`);
  const deafen = bell.hear(LINE_TOPIC, (topic) => runners.get(topic.slice(LINE_TOPIC.length))?.wake());
  const world = sendWorld(kv, runtime);
  const dueAt = new Map<string, number>();
  const from = runtime.clock.now() + 8_000;
  await Promise.all(ids.flatMap((lineId, line) =>
    Array.from({ length: DUE_A_LINE }, async (_, i) => {
      const to = String(34_600_000_000 + line * DUE_A_LINE + i);
      const sendAt = from + runtime.random.between(0, DUE_WITHIN_MS);
      dueAt.set(to, sendAt);
      await world.accept(
        aSend({ line: aLine(lineId), sendAt, items: [{ to, content: { kind: "text", text: "hi" } }] }),
      );
    })
  ));
  for (const lineId of ids) runners.set(lineId, await startRunner({ lineId, accountId: "acc_1", plan }));
  report(`${LINES} lines wait for ${dueAt.size} messages`);
  const until = from + DUE_WITHIN_MS + 5_000;
  while (network.departures.length < dueAt.size && runtime.clock.now() < until) {
    await new Promise((resolve) => void runtime.clock.after(100, () => resolve(null)));
  }
  await Promise.all([...runners.values()].map((runner) => runner.stop()));
  deafen();
  await bell.close();
  const late = network.departures.map(({ to, at }) => at - dueAt.get(to)!);
  if (late.length < dueAt.size || Math.min(...late) < 0) {
    throw new Error(`${late.length} left, at earliest ${Math.min(...late)} ms late`);
  }
  const p99 = percentile(late, 99);
  return {
    name: `p99 of how late a scheduled message leaves / ${MOST_LATE_MS} ms`,
    ratios: [p99 / MOST_LATE_MS],
    goal: { atMost: 1 },
    detail: `p50 ${median(late)} ms, p99 ${p99} ms of ${late.length} on ${LINES} lines`,
  };
}
