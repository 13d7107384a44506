/**
 * A long history swept to a tenth while 200 messages a second are accepted, against the same without the sweep; and the
 * size of the file before, after, and after as many messages again, which use the freed pages.
 */
import { join } from "node:path";
import { sweepHistory } from "../../src/message/history/retention.ts";
import { makeLog } from "../../src/ops/log.ts";
import { type Runtime, sleep, systemRuntime } from "../../src/runtime.ts";
import { openDenoKv } from "../../src/store/deno_kv/deno_kv.ts";
import { aCaller, aSend, type SendWorld, sendWorld } from "../../tests/support/send_world.ts";
import { ACCOUNT, fill } from "./history.ts";
import { type Bench, type BenchOptions, percentile, type Result } from "./measure.ts";

const RATE = 200;
const MEASURE_MS = 10_000;
/** Of the sixty that the history goes back. */
const KEPT_DAYS = 6;
const DAY_MS = 24 * 3_600_000;

export const retention: Bench = {
  name: "retention",
  about: "p99 of accepting 200 messages a second while nine tenths of a long history are removed, against none removed",
  async run(options) {
    const folder = await Deno.makeTempDir({ prefix: "paloma-bench-" });
    const runtime = systemRuntime(makeLog("error"));
    const path = join(folder, "paloma.db");
    const kv = await openDenoKv(path, { runtime });
    try {
      return [await measure(sendWorld(kv, runtime as SendWorld["runtime"]), { path, runtime, options })];
    } finally {
      kv.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
};

async function measure(
  world: SendWorld,
  { path, runtime, options: { messages, report } }: { path: string; runtime: Runtime; options: BenchOptions },
): Promise<Result> {
  const { kv } = world;
  const size = async () => `${((await Deno.stat(path)).size / 1e6).toFixed(0)} MB`;
  await fill(kv, messages, runtime);
  report(`${messages} messages: ${await size()}`);
  const quiet = await accepts(world, runtime, { until: sleep(runtime.clock, MEASURE_MS) });
  const began = runtime.clock.now();
  let removed = 0;
  const sweeping = sweepHistory({ kv, runtime }, { keepMs: KEPT_DAYS * DAY_MS, most: Infinity }).then((count) =>
    void (removed = count)
  );
  const busy = await accepts(world, runtime, { until: sweeping });
  report(`${removed} removed in ${((runtime.clock.now() - began) / 1000).toFixed(0)} s: ${await size()}`);
  await fill(kv, messages, runtime);
  report(`${messages} messages more: ${await size()}`);
  const [during, without] = [percentile(busy, 99), percentile(quiet, 99)];
  return {
    name: "p99 of accepting during the sweep / without",
    ratios: [during / without],
    goal: { atMost: 1.5 },
    detail: `${during.toFixed(1)} ms of ${busy.length} against ${without.toFixed(1)} ms of ${quiet.length}`,
  };
}

/** How long each send took, milliseconds. */
async function accepts(world: SendWorld, { clock }: Runtime, { until }: { until: Promise<void> }): Promise<number[]> {
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
