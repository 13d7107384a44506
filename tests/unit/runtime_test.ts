/** The clock that everything waits on. */
import assert from "node:assert/strict";
import { mock } from "node:test";
import { steadyTime, systemClock } from "../../src/runtime.ts";

Deno.test("a clock that is set back goes on, and is caught up with", () => {
  let wall = 1_000_000;
  let elapsed = 50;
  const now = steadyTime(() => wall, () => elapsed);
  const pass = (ms: number) => {
    wall += ms;
    elapsed += ms;
    return now();
  };
  assert.equal(now(), 1_000_000);
  assert.equal(pass(1_000), 1_001_000);
  wall -= 600_000;
  assert.equal(now(), 1_001_000);
  assert.equal(pass(10_000), 1_010_900);
  assert.equal(pass(600_000), 1_604_900);
  // It was 600 s ahead; each second it loses a hundredth.
  assert.equal(pass(60_000_000), wall);
});

Deno.test("a clock that is set forward, or slept, is followed at once", () => {
  let wall = 5;
  const now = steadyTime(() => wall, () => 0);
  wall += 8 * 3_600_000;
  assert.equal(now(), wall);
});

Deno.test("a wait that is longer than the runtime's timers runs at its end, and can be cancelled in each of its parts", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const fortyDays = 40 * 24 * 3_600_000;
    const ran: string[] = [];
    systemClock.after(fortyDays, () => ran.push("waited"));
    const cancel = systemClock.after(fortyDays, () => ran.push("cancelled"));
    for (let days = 0; days < 39; days++) mock.timers.tick(24 * 3_600_000);
    assert.deepEqual(ran, []);
    cancel();
    mock.timers.tick(24 * 3_600_000);
    assert.deepEqual(ran, ["waited"]);
  } finally {
    mock.timers.reset();
  }
});
