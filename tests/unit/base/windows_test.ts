import assert from "node:assert/strict";
import { Windows } from "../../../src/base/windows.ts";
import { ManualClock } from "../../support/runtime.ts";

const MINUTE_MS = 60_000;

Deno.test("each tenant has a window of its own, which begins with the first that is counted", async () => {
  const clock = new ManualClock();
  const windows = new Windows(clock, MINUTE_MS);
  windows.add("ana");
  await clock.advance(40_000);
  assert.equal(windows.add("ana").count, 2);
  assert.equal(windows.add("ben").count, 1);
  assert.deepEqual([windows.secondsLeft("ana"), windows.secondsLeft("ben")], [20, 60]);
  await clock.advance(20_000);
  assert.deepEqual([windows.count("ana"), windows.count("ben")], [0, 1]);
  assert.equal(windows.add("ana").count, 1);
});

Deno.test("who is forgiven begins anew, and others do not", () => {
  const windows = new Windows(new ManualClock(), MINUTE_MS);
  for (const tenant of ["ana", "ana", "ben"]) windows.add(tenant);
  windows.forgive("ana");
  assert.deepEqual([windows.count("ana"), windows.count("ben")], [0, 1]);
});
