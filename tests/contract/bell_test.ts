/** The bell's contract on Deno KV's queue: on the real clock, and on one that moves only when told. */
import { systemClock } from "../../src/runtime.ts";
import { denoKvBell, openDenoKvBell } from "../../src/store/deno_kv/bell.ts";
import { clockedQueue } from "../support/bell.ts";
import { testRuntime } from "../support/runtime.ts";
import { bellContract } from "./bell_contract.ts";

bellContract({
  name: "Deno KV's queue in memory",
  async open() {
    const runtime = { ...testRuntime(), clock: systemClock };
    return { bell: await openDenoKvBell({ runtime }), runtime, pass: () => Promise.resolve() };
  },
});

bellContract({
  name: "a queue on the test's clock",
  open() {
    const runtime = testRuntime();
    const queue = clockedQueue(runtime.clock, () => runtime.random.between(0, 150));
    return Promise.resolve({
      bell: denoKvBell(queue, { runtime }),
      runtime,
      pass: (ms) => runtime.clock.advance(ms),
    });
  },
});
