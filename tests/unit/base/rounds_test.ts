import assert from "node:assert/strict";
import { makeRounds } from "../../../src/base/rounds.ts";
import { testRuntime } from "../../support/runtime.ts";

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
