import assert from "node:assert/strict";
import { makeMaintenance, type Sweep } from "../../../src/ops/maintenance.ts";
import { testBell } from "../../support/bell.ts";
import { testRuntime } from "../../support/runtime.ts";

const MINUTE_MS = 60_000;

function countingSweep(name: string, everyMs: number, run: Sweep["run"] = () => Promise.resolve(0)) {
  const sweep = { name, everyMs, runs: 0, run: (signal: AbortSignal) => (sweep.runs++, run(signal)) };
  return sweep;
}

Deno.test("each sweep runs soon after the start and then at its own pace", async () => {
  const runtime = testRuntime();
  const often = countingSweep("often", MINUTE_MS);
  const seldom = countingSweep("seldom", 60 * MINUTE_MS);
  const maintenance = makeMaintenance([often, seldom], runtime);
  await maintenance.start();
  await maintenance.start();
  await runtime.clock.advance(9_000);
  assert.deepEqual([often.runs, seldom.runs], [0, 0]);
  await runtime.clock.advance(15_000);
  assert.deepEqual([often.runs, seldom.runs], [1, 1]);
  await runtime.clock.advance(10 * MINUTE_MS);
  assert.deepEqual([often.runs, seldom.runs], [11, 1]);
  await maintenance.stop();
  await runtime.clock.advance(120 * MINUTE_MS);
  assert.deepEqual([often.runs, seldom.runs], [11, 1]);
});

Deno.test("a sweep that fails is logged, comes again, and disturbs no other", async () => {
  const runtime = testRuntime();
  const failing = countingSweep("failing", MINUTE_MS, () => Promise.reject(new Error("disk")));
  const other = countingSweep("other", MINUTE_MS);
  const maintenance = makeMaintenance([failing, other], runtime);
  await maintenance.start();
  await runtime.clock.advance(5 * MINUTE_MS);
  assert.ok(failing.runs >= 4 && other.runs >= 4);
  assert.ok(runtime.lines.some((line) => line.sweep === "failing" && line.level === 40));
  await maintenance.stop();
});

Deno.test("stopping aborts the sweep that runs, waits for it, and starts no other", async () => {
  const runtime = testRuntime();
  let ended = false;
  const slow = countingSweep(
    "slow",
    MINUTE_MS,
    (signal) =>
      new Promise((resolve) =>
        signal.addEventListener("abort", () => {
          ended = true;
          resolve(0);
        })
      ),
  );
  const waiting = countingSweep("waiting", MINUTE_MS);
  const maintenance = makeMaintenance([slow, waiting], runtime);
  await maintenance.start();
  await runtime.clock.advance(5 * MINUTE_MS);
  assert.equal(slow.runs, 1);
  const before = waiting.runs;
  await maintenance.stop();
  await maintenance.stop();
  assert.ok(ended);
  assert.equal(waiting.runs, before);
});

Deno.test("a ring runs a sweep at once, and once more when it comes while that runs", async () => {
  const runtime = testRuntime();
  const bell = testBell(runtime);
  const ends: (() => void)[] = [];
  const woken = {
    ...countingSweep("woken", 60 * MINUTE_MS, () => new Promise((resolve) => ends.push(() => resolve(0)))),
    wakenBy: (wake: () => void) => bell.hear("work", wake),
  };
  let runs = 0;
  const maintenance = makeMaintenance([{ ...woken, run: (signal) => (runs++, woken.run(signal)) }], runtime);
  await maintenance.start();
  bell.ring("work");
  await runtime.clock.advance(0);
  assert.equal(runs, 1);
  bell.ring("work");
  bell.ring("work");
  await runtime.clock.advance(0);
  assert.equal(runs, 1);
  ends.shift()!();
  await runtime.clock.advance(0);
  assert.equal(runs, 2);
  ends.shift()!();
  await runtime.clock.advance(10 * MINUTE_MS);
  assert.equal(runs, 2);
  await maintenance.stop();
});
