/**
 * A long history swept to a tenth while 200 messages a second are accepted, against the same without the sweep; and the
 * size of the file before, after, and after as many messages again, which use the freed pages.
 */
import { join } from "node:path";
import { makeFilterIndex } from "../../src/message/history/filter_index.ts";
import { sweepHistory } from "../../src/message/history/retention.ts";
import { makeLog } from "../../src/ops/log.ts";
import { type Clock, type Runtime, sleep, systemRuntime } from "../../src/runtime.ts";
import { openDenoKv } from "../../src/store/deno_kv/deno_kv.ts";
import { aCaller, aSend, type SendWorld, sendWorld } from "../../tests/support/send_world.ts";
import { ACCOUNT, fill } from "./history.ts";
import { type Bench, type BenchOptions, percentile, type Result } from "./measure.ts";

const RATE = 200;
/** With the sweep and without it, in turn, so that both meet the same weather. */
const TURN_MS = 5_000;
/** Turns of each whose samples make a round. */
const TURNS = 6;
const DAY_MS = 24 * 3_600_000;
/** Six of the history's sixty days, however many messages they hold. */
const KEPT = { keepMs: 6 * DAY_MS, most: Infinity };

export const retention: Bench = {
  name: "retention",
  about: "p99 of accepting 200 messages a second while nine tenths of a long history are removed, against none removed",
  async run(options) {
    const folder = await Deno.makeTempDir({ prefix: "paloma-bench-" });
    const runtime = systemRuntime(makeLog("error"));
    const path = join(folder, "paloma.db");
    const kv = await openDenoKv(path, { runtime });
    try {
      return [await measure(sendWorld(kv, runtime), { path, runtime, options })];
    } finally {
      kv.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
};

async function measure(
  world: SendWorld<Runtime>,
  { path, runtime, options: { messages, rounds, report } }: { path: string; runtime: Runtime; options: BenchOptions },
): Promise<Result> {
  const { kv } = world;
  const { clock } = runtime;
  const size = async () => `${((await Deno.stat(path)).size / 1e6).toFixed(0)} MB`;
  await fill(kv, messages, runtime);
  await makeFilterIndex(kv).catchUp(ACCOUNT);
  report(`${messages} messages: ${await size()}`);
  const quiet: number[][] = [];
  const busy: number[][] = [];
  let removed = 0;
  for (let round = 1; round <= rounds; round++) {
    const [without, during]: [number[], number[]] = [[], []];
    for (let turn = 0; turn < TURNS; turn++) {
      without.push(...await accepts(world, runtime, { until: sleep(clock, TURN_MS) }));
      const over = new AbortController();
      clock.after(TURN_MS, () => over.abort());
      const sweeping = sweepHistory({ kv, runtime }, { ...KEPT, signal: over.signal });
      during.push(...await accepts(world, runtime, { until: sweeping }));
      removed += await sweeping;
    }
    quiet.push(without);
    busy.push(during);
    const [p99, quietP99] = [during, without].map((took) => `${percentile(took, 99).toFixed(1)} ms`);
    report(`round ${round}: p99 ${p99} against ${quietP99}, ${removed} removed`);
  }
  const began = clock.now();
  const rest = sweepHistory({ kv, runtime: { clock: impatient(clock) } }, KEPT);
  await accepts(world, runtime, { until: rest });
  report(`${await rest} more removed in ${((clock.now() - began) / 1000).toFixed(0)} s: ${await size()}`);
  await fill(kv, messages, runtime);
  await makeFilterIndex(kv).catchUp(ACCOUNT);
  report(`${messages} messages more: ${await size()}`);
  const shown = (rounds: number[][]) =>
    [50, 90, 99].map((percent) => `p${percent} ${percentile(rounds.flat(), percent).toFixed(1)}`).join(", ");
  return {
    name: "p99 of accepting during the sweep / without",
    ratios: busy.map((during, round) => percentile(during, 99) / percentile(quiet[round]!, 99)),
    goal: { atMost: 1.5 },
    detail: `${shown(busy)} ms of ${busy.flat().length} against ${shown(quiet)} ms of ${quiet.flat().length}`,
  };
}

/** A sweep by this clock waits for nobody's commit: for what is no longer measured. */
function impatient(clock: Clock): Clock {
  return { now: () => clock.now(), after: (_, run) => clock.after(0, run) };
}

/** How long each send took, milliseconds. */
async function accepts(
  world: SendWorld<Runtime>,
  { clock }: Runtime,
  { until }: { until: Promise<unknown> },
): Promise<number[]> {
  const took: number[] = [];
  const under = new Set<Promise<void>>();
  let over = false;
  const ending = until.then(() => over = true);
  const began = clock.now();
  for (let i = 0; !over; i++) {
    const send = (async () => {
      const at = performance.now();
      await world.accept(aSend({ caller: aCaller({}, ACCOUNT) }));
      took.push(performance.now() - at);
    })();
    under.add(send);
    void send.then(() => under.delete(send));
    const next = began + (i + 1) * 1000 / RATE - clock.now();
    if (next > 0) await sleep(clock, next);
  }
  await Promise.all([ending, ...under]);
  return took;
}
