import assert from "node:assert/strict";
import { retry } from "../../../src/base/retry.ts";
import { StoreError, untilStored } from "../../../src/store/kv.ts";
import { ManualClock } from "../../support/runtime.ts";

/** Fails so often, then gives "done". */
function failing(times: number, error: Error = new Error("no")) {
  const work = () => Promise.resolve(++work.tries > times ? "done" : Promise.reject(error));
  work.tries = 0;
  return work;
}

Deno.test("work is tried again after each pause until it succeeds, and each failure is reported", async () => {
  const clock = new ManualClock();
  const work = failing(3);
  const errors: unknown[] = [];
  const done = retry(work, { clock, pauseMs: 100, onRetry: (error) => errors.push(error) });
  await clock.advance(299);
  assert.equal(work.tries, 3);
  await clock.advance(1);
  assert.equal(await done, "done");
  assert.equal(errors.length, 3);
});

Deno.test("after the last pause of a list the failure is the answer", async () => {
  const clock = new ManualClock();
  const work = failing(9);
  const refused = assert.rejects(retry(work, { clock, pauseMs: [10, 20] }), /no/);
  await clock.advance(30);
  await refused;
  assert.equal(work.tries, 3);
});

Deno.test("a failure that does not pass is the answer at once", async () => {
  const work = failing(1);
  const options = { clock: new ManualClock(), pauseMs: 10, isTransient: () => false };
  await assert.rejects(retry(work, options), /no/);
  assert.equal(work.tries, 1);
});

Deno.test("the signal ends a pause, and the last failure is the answer", async () => {
  const stopping = new AbortController();
  const clock = new ManualClock();
  const work = failing(9);
  const refused = assert.rejects(retry(work, { clock, pauseMs: 10, signal: stopping.signal }), /no/);
  await clock.advance(5);
  stopping.abort();
  await refused;
  assert.equal(work.tries, 1);
  assert.equal(clock.nextTimer(), null);
});

Deno.test("until the store is back means its own trouble only", async () => {
  const clock = new ManualClock();
  const { signal } = new AbortController();
  const trouble: string[] = [];
  const options = { clock, signal, onRetry: (error: unknown) => void trouble.push(String(error)) };
  const done = untilStored(failing(2, new StoreError("full", "no space")), options);
  await clock.advance(2_000);
  assert.equal(await done, "done");
  assert.deepEqual(trouble, ["StoreError: no space", "StoreError: no space"]);
  await assert.rejects(untilStored(failing(1, new TypeError("a mistake")), options), TypeError);
});
