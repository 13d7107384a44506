import assert from "node:assert/strict";
import { afterDeparture, atStart, nextDeparture, whileDeparting } from "../../../../src/line/runner/pacing.ts";
import { seededRandom } from "../../../support/runtime.ts";
import { World } from "../../../support/line_world.ts";

const PLANS = [
  { delayMinMs: 5_000, delayMaxMs: 15_000 },
  { delayMinMs: 100, delayMaxMs: 300 },
  { delayMinMs: 1_000, delayMaxMs: 1_000 },
  { delayMinMs: 0, delayMaxMs: 2_000 },
  { delayMinMs: 0, delayMaxMs: 0 },
];

Deno.test("the next departure is never sooner than the pause allows, counted from the answer", () => {
  const random = seededRandom(7);
  for (const plan of PLANS) {
    for (let i = 0; i < 500; i++) {
      const handedOverAt = 1_000_000;
      const answeredAt = handedOverAt + random.between(0, 20_000);
      const { nextDepartureAt } = afterDeparture(handedOverAt, answeredAt, { plan, random });
      assert.ok(nextDepartureAt >= answeredAt + plan.delayMinMs);
      // Later than the maximum only when the answer itself took so long that the minimum leaves no choice.
      assert.ok(nextDepartureAt <= Math.max(handedOverAt + plan.delayMaxMs, answeredAt + plan.delayMinMs));
    }
  }
});

Deno.test("pauses are drawn from all of the plan's range but the slack at its end", () => {
  const random = seededRandom(3);
  const plan = { delayMinMs: 5_000, delayMaxMs: 15_000 };
  const pauses = Array.from({ length: 2_000 }, () => afterDeparture(0, 0, { plan, random }).nextDepartureAt);
  assert.ok(Math.min(...pauses) < 5_100 && Math.max(...pauses) > 13_900 && Math.max(...pauses) <= 14_000);
});

Deno.test("a crash in the middle of an attempt leaves at least the minimum after the latest departure it may have had", () => {
  const random = seededRandom(5);
  const plan = { delayMinMs: 5_000, delayMaxMs: 15_000 };
  for (let i = 0; i < 500; i++) {
    const { nextDepartureAt } = whileDeparting(0, { plan, random });
    assert.ok(nextDepartureAt >= 6_000 && nextDepartureAt <= 15_000);
  }
});

Deno.test("without a departure before, or with one long ago, a message leaves at once", () => {
  const plan = { delayMinMs: 5_000, delayMaxMs: 15_000 };
  assert.equal(nextDeparture(null, 1_000, plan), 1_000);
  assert.ok(nextDeparture({ lastDepartureAt: 0, nextDepartureAt: 9_000 }, 20_000, plan) <= 20_000);
});

Deno.test("a pause follows the plan when the plan changes in the middle of it", () => {
  const pacing = { lastDepartureAt: 100_000, nextDepartureAt: 110_000 };
  assert.equal(nextDeparture(pacing, 101_000, { delayMinMs: 0, delayMaxMs: 2_000 }), 102_000);
  assert.equal(nextDeparture(pacing, 101_000, { delayMinMs: 20_000, delayMaxMs: 30_000 }), 120_000);
});

Deno.test("a system clock that was set back delays a line by at most one pause", () => {
  const pacing = { lastDepartureAt: 10_000_000, nextDepartureAt: 10_010_000 };
  assert.equal(nextDeparture(pacing, 1_000, { delayMinMs: 5_000, delayMaxMs: 15_000 }), 16_000);
});

/** Gaps between neighbouring first departures of a line's messages. */
function gaps(world: World): number[] {
  const at = world.network.departures.map((departure) => departure.at);
  return at.slice(1).map((time, i) => time - at[i]!);
}

for (const seed of [1, 2, 3]) {
  Deno.test(`gaps on the wire stay within the plan whatever encoding, answers and the bell take (seed ${seed})`, async () => {
    const world = new World({ delays: { minMs: 5_000, maxMs: 15_000 }, seed });
    const { random } = world.runtime;
    world.network.encodeMs = () => random.between(0, 300);
    world.network.answerMs = () => random.between(0, 500);
    await world.addLine();
    await world.boot();
    for (let i = 0; i < 40; i++) await world.accept();
    await world.clock.advance(40 * 16_000);
    assert.equal(world.network.departures.length, 40);
    for (const gap of gaps(world)) assert.ok(gap >= 5_000 && gap <= 15_000, `gap of ${gap} ms`);
    await world.supervisor.stop();
  });

  Deno.test(`gaps stay at least the minimum when the process dies over and over (seed ${seed})`, async () => {
    const world = new World({ delays: { minMs: 5_000, maxMs: 15_000 }, seed });
    const { random } = world.runtime;
    world.network.encodeMs = () => random.between(0, 300);
    world.network.answerMs = () => random.between(0, 500);
    await world.addLine();
    await world.boot();
    const messages = [];
    for (let i = 0; i < 30; i++) messages.push(await world.accept());
    for (let i = 0; i < 25; i++) {
      await world.clock.advance(random.between(100, 20_000));
      world.crash();
      await world.boot();
    }
    await world.clock.advance(30 * 16_000);
    for (const gap of gaps(world)) assert.ok(gap >= 5_000, `gap of ${gap} ms`);
    // Each under one id and in order; a repetition follows its first directly.
    const ids = world.network.departures.map(({ networkId }) => networkId).filter((id, i, all) => id !== all[i - 1]);
    assert.deepEqual(ids, messages.map(({ networkId }) => networkId));
    await world.supervisor.stop();
  });
}

Deno.test("a restart in the middle of a pause neither shortens nor restarts it", async () => {
  const world = new World({ delays: { minMs: 5_000, maxMs: 15_000 } });
  await world.addLine();
  await world.boot();
  await world.accept();
  await world.accept();
  await world.clock.advance(2_000);
  await world.supervisor.stop();
  await world.boot();
  await world.clock.advance(20_000);
  const [gap] = gaps(world);
  assert.ok(gap! >= 5_000 && gap! <= 15_000, `gap of ${gap} ms`);
  await world.supervisor.stop();
});

Deno.test("a clock that was set back while nothing ran costs a line one pause, not the difference", () => {
  const plan = { delayMinMs: 5_000, delayMaxMs: 15_000 };
  const kept = { lastDepartureAt: 600_000, nextDepartureAt: 608_000 };
  const now = 1_000;
  const pacing = atStart(kept, now);
  assert.equal(nextDeparture(pacing, now, plan), now + 8_000);
  assert.equal(nextDeparture(pacing, now + 8_000, plan), now + 8_000);
  assert.deepEqual(atStart(kept, 600_000), kept);
});
