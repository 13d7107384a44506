/** When a line that lost its connection tries again. */
import assert from "node:assert/strict";
import { BackOff } from "../../../src/line/back_off.ts";
import { systemRandom } from "../../../src/runtime.ts";

const series = (length: number, backOff = new BackOff(systemRandom)) => Array.from({ length }, () => backOff.next());
const sum = (pauses: number[]) => pauses.reduce((total, pause) => total + pause, 0);

Deno.test("the first try is at once, and in an outage of a minute none is further off than eight seconds", () => {
  for (let run = 0; run < 200; run++) {
    const pauses = series(16);
    assert.ok(pauses[0]! <= 250, `${pauses[0]}`);
    assert.ok(pauses.every((pause) => pause <= 8_000), pauses.join());
    assert.ok(sum(pauses) > 60_000);
  }
});

Deno.test("five hundred lines that were lost together do not come back in one moment", () => {
  // When each line's first try after a minute of outage falls.
  const backAt = Array.from({ length: 500 }, () => {
    const pauses = series(40);
    let at = 0;
    while (at < 60_000) at += pauses.shift()!;
    return at;
  });
  const seconds = Map.groupBy(backAt, (at) => Math.floor(at / 1_000));
  assert.ok(backAt.every((at) => at < 68_000));
  assert.ok([...seconds.values()].every((lines) => lines.length < 150), "most in one second");
});

Deno.test("a network that is away for long is asked once a minute", () => {
  const pauses = series(60);
  assert.ok(sum(pauses.slice(0, 45)) >= 3 * 60_000);
  assert.ok(pauses.slice(45).every((pause) => pause >= 30_000 && pause <= 60_000));
});

Deno.test("a network that flaps is not punished, and 515 is no failure", () => {
  const backOff = new BackOff(systemRandom);
  for (let fault = 0; fault < 20; fault++) {
    backOff.ended(1_900);
    assert.ok(backOff.next() <= 2_000);
  }
  backOff.ended(20_000);
  assert.deepEqual(Array.from({ length: 4 }, () => backOff.restartsAtOnce()), [true, true, true, false]);
  assert.ok(backOff.next() <= 250, "the first failure");
});
