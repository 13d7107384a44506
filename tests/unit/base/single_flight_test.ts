import assert from "node:assert/strict";
import { Loop, makeRounds } from "../../../src/base/single_flight.ts";
import { settle, testRuntime } from "../../support/runtime.ts";

/** A loop whose works end when the test says so. */
function held(everyMs: number) {
  const { clock } = testRuntime();
  const ends: (() => void)[] = [];
  const loop = new Loop(clock, () => new Promise((resolve) => ends.push(() => resolve(everyMs))));
  return { clock, loop, ends };
}

Deno.test("work comes after the time that the last one asked for, and sooner when somebody asks", async () => {
  const { clock, loop, ends } = held(1_000);
  loop.start(50);
  await clock.advance(49);
  assert.equal(ends.length, 0);
  await clock.advance(1);
  assert.equal(ends.length, 1);
  ends[0]!();
  await settle();
  await clock.advance(500);
  void loop.now();
  assert.equal(ends.length, 2);
  ends[1]!();
  await settle();
  await clock.advance(999);
  assert.equal(ends.length, 2);
  await clock.advance(1);
  assert.equal(ends.length, 3);
});

Deno.test("who asks during the work gets one more after it, and a stop waits for the work and lets none follow", async () => {
  const { clock, loop, ends } = held(10);
  await loop.now();
  assert.equal(ends.length, 0, "it has not started");
  loop.start(10);
  void loop.now();
  void loop.now();
  void loop.now();
  ends[0]!();
  await settle();
  assert.equal(ends.length, 2);
  let stopped = false;
  const stopping = loop.stop().then(() => stopped = true);
  await settle();
  assert.ok(!stopped);
  ends[1]!();
  await stopping;
  await clock.advance(1_000);
  assert.equal(ends.length, 2);
});

Deno.test("all look in one round, each until its end, and no timer is left without them", async () => {
  const { clock } = testRuntime();
  let timers = 0;
  const after = clock.after.bind(clock);
  const rounds = makeRounds({ now: () => clock.now(), after: (ms, run) => (timers++, after(ms, run)) }, 5_000);
  const looks = [0, 0];
  const ends = [0, 1].map((who) => rounds(() => looks[who]!++));
  await clock.advance(5_000);
  assert.deepEqual([looks, timers], [[1, 1], 2]);
  ends[0]!();
  await clock.advance(5_000);
  assert.deepEqual([looks, timers], [[1, 2], 3]);
  ends[1]!();
  ends[1]!();
  await clock.advance(60_000);
  assert.deepEqual([looks, timers], [[1, 2], 3]);
  rounds(() => looks[0]!++);
  await clock.advance(10_000);
  assert.deepEqual(looks, [3, 2]);
});

Deno.test("one that ends within its look is called no more, and disturbs no other", async () => {
  const { clock } = testRuntime();
  const rounds = makeRounds(clock, 5_000);
  let first = 0;
  let second = 0;
  const end = rounds(() => {
    first++;
    end();
  });
  rounds(() => second++);
  await clock.advance(15_000);
  assert.deepEqual([first, second], [1, 3]);
});
