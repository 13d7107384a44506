import assert from "node:assert/strict";
import { ConfirmedTime } from "../../src/runtime.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const START = Date.UTC(2026, 0, 15, 12);

function stage() {
  const system = { time: START, elapsed: 0 };
  const confirmed = new ConfirmedTime(() => system.time, () => system.elapsed);
  return {
    confirmed,
    /** Time passes. */
    pass(ms: number) {
      system.time += ms;
      system.elapsed += ms;
    },
    /** The system's clock is set. */
    set: (byMs: number) => void (system.time += byMs),
    since: () => confirmed.now() - START,
  };
}

Deno.test("the confirmed time follows a clock that runs, is corrected, or is set back", () => {
  const s = stage();
  s.pass(10 * DAY_MS);
  assert.equal(s.since(), 10 * DAY_MS);
  s.set(30 * MINUTE_MS);
  assert.equal(s.since(), 10 * DAY_MS + 30 * MINUTE_MS);
  s.set(-DAY_MS);
  assert.equal(s.since(), 9 * DAY_MS + 30 * MINUTE_MS);
});

for (const [name, jumpMs] of Object.entries({ "two hours": 2 * HOUR_MS, "a day": DAY_MS, "a year": 365 * DAY_MS })) {
  Deno.test(`a clock that jumps ahead by ${name} is not believed until that has stood for hours`, () => {
    const s = stage();
    s.set(jumpMs);
    assert.equal(s.since(), 0);
    assert.equal(s.confirmed.aheadMs(), jumpMs);
    s.pass(5 * HOUR_MS);
    assert.equal(s.since(), 5 * HOUR_MS);
    s.pass(2 * HOUR_MS);
    assert.equal(s.since(), jumpMs + 7 * HOUR_MS);
    assert.equal(s.confirmed.aheadMs(), 0);
  });

  Deno.test(`a clock that was ahead by ${name} for a while has changed nothing`, () => {
    const s = stage();
    s.set(jumpMs);
    s.pass(2 * MINUTE_MS);
    assert.equal(s.since(), 2 * MINUTE_MS);
    s.set(-jumpMs);
    assert.equal(s.since(), 2 * MINUTE_MS);
    // A second jump begins anew.
    s.set(jumpMs);
    s.pass(5 * HOUR_MS);
    s.set(jumpMs);
    s.pass(5 * HOUR_MS);
    assert.equal(s.since(), 10 * HOUR_MS + 2 * MINUTE_MS);
  });
}

Deno.test("the network's word settles it at once, for the clock or against it", () => {
  const s = stage();
  s.set(3 * DAY_MS);
  assert.equal(s.since(), 0);
  s.confirmed.confirm(START + 3 * DAY_MS - 20_000);
  assert.equal(s.since(), 3 * DAY_MS);
  s.set(365 * DAY_MS);
  s.confirmed.confirm(START + 3 * DAY_MS);
  s.pass(30 * DAY_MS);
  assert.equal(s.since(), 33 * DAY_MS, "however long it stands");
});

Deno.test("a clock that was behind when the network told its time is believed once it is set right", () => {
  const s = stage();
  s.set(-365 * DAY_MS);
  s.confirmed.confirm(START);
  s.pass(DAY_MS);
  assert.equal(s.since(), -364 * DAY_MS);
  s.set(365 * DAY_MS);
  assert.equal(s.since(), DAY_MS);
});

Deno.test("a run continues from where the last one ended, and believes no clock that is ahead of it at the start", () => {
  const s = stage();
  s.confirmed.resume(START - 3 * DAY_MS);
  assert.equal(s.since(), -3 * DAY_MS);
  s.pass(5 * HOUR_MS);
  assert.equal(s.since(), -3 * DAY_MS + 5 * HOUR_MS);
  s.confirmed.confirm(START + 5 * HOUR_MS);
  assert.equal(s.since(), 5 * HOUR_MS);
  s.confirmed.resume(START + 100 * DAY_MS);
  assert.equal(s.since(), 5 * HOUR_MS, "never ahead of the clock");
});
