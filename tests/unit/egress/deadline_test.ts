import assert from "node:assert/strict";
import { Deadline } from "../../../src/egress/deadline.ts";
import { EgressError } from "../../../src/egress/egress_error.ts";
import { ManualClock } from "../../support/runtime.ts";

const timedOut = (error: unknown) => error instanceof EgressError && error.code === "timeout";

Deno.test("what was waited for is not kept until the request ends: a download would stay in memory whole", async () => {
  const deadline = new Deadline(new ManualClock(), { timeoutMs: 10_000 });
  const PART_BYTES = 8 * 1024 ** 2;
  const PARTS = 200;
  const before = Deno.memoryUsage().external;
  for (let i = 0; i < PARTS; i++) {
    await deadline.race(Promise.resolve(new Uint8Array(PART_BYTES)));
    // The collector of garbage works between turns of the event loop.
    await new Promise((resolve) => setTimeout(resolve));
  }
  const held = Deno.memoryUsage().external - before;
  assert.ok(held < PARTS * PART_BYTES / 2, `${held / 1024 ** 2} MiB are held`);
  deadline.end();
});

Deno.test("everybody who waits hears that time is up, what is open is closed, and what comes late is taken", async () => {
  const clock = new ManualClock();
  const deadline = new Deadline(clock, { timeoutMs: 10_000 });
  const connecting = Promise.withResolvers<string>();
  const calls: string[] = [];
  deadline.onStop(() => calls.push("closed"));
  const first = deadline.race(connecting.promise, (late) => calls.push(late));
  const second = deadline.race(new Promise(() => {}));
  const both = Promise.all([assert.rejects(first, timedOut), assert.rejects(second, timedOut)]);
  await clock.advance(10_000);
  await both;
  connecting.resolve("late");
  await assert.rejects(deadline.race(Promise.resolve("later"), (late) => calls.push(late)), timedOut);
  assert.deepEqual(calls, ["closed", "late", "later"]);
});
