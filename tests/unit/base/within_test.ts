import assert from "node:assert/strict";
import { settledWithin, timeLimit, unlessAborted, within } from "../../../src/base/within.ts";
import { ManualClock } from "../../support/runtime.ts";

const never = () => new Promise<never>(() => {});

Deno.test("a promise that settles in time gives what it gives, and leaves no timer", async () => {
  const clock = new ManualClock();
  assert.equal(await within(clock, 100, Promise.resolve("done")), "done");
  await assert.rejects(within(clock, 100, Promise.reject(new Error("no"))), /no/);
  assert.equal(clock.nextTimer(), null);
});

Deno.test("a promise that takes longer is late, and so is one that nobody waits for any more", async () => {
  const clock = new ManualClock();
  const late = within(clock, 100, never());
  const unwanted = new AbortController();
  const dropped = within(clock, 100, never(), unwanted.signal);
  unwanted.abort();
  assert.equal(await dropped, "late");
  await clock.advance(100);
  assert.equal(await late, "late");
  assert.equal(await within(clock, 100, never(), AbortSignal.abort()), "late");
});

Deno.test("a rejection counts as settled", async () => {
  const clock = new ManualClock();
  assert.equal(await settledWithin(clock, 100, Promise.reject(new Error("no"))), true);
  const late = settledWithin(clock, 100, never());
  await clock.advance(100);
  assert.equal(await late, false);
});

Deno.test("a time limit aborts when time is up, or with the signal that it was made with", async () => {
  const clock = new ManualClock();
  const outer = new AbortController();
  using over = timeLimit(clock, 100);
  using stopped = timeLimit(clock, 1_000, outer.signal);
  const refused = assert.rejects(unlessAborted(over.signal, never()), { name: "TimeoutError" });
  await clock.advance(100);
  await refused;
  assert.equal(over.isOver, true);
  outer.abort(new Error("stopped"));
  await assert.rejects(unlessAborted(stopped.signal, never()), /stopped/);
  assert.equal(stopped.isOver, false);
});

Deno.test("a time limit that is disposed of leaves no timer", async () => {
  const clock = new ManualClock();
  {
    using limit = timeLimit(clock, 100);
    assert.equal(await unlessAborted(limit.signal, Promise.resolve("done")), "done");
  }
  assert.equal(clock.nextTimer(), null);
});
