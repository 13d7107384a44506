import assert from "node:assert/strict";
import { Faults, streamError } from "../../../../src/sandbox/world/faults.ts";
import { ManualClock } from "../../../support/runtime.ts";

const LINE = "4915100000001";

Deno.test("a stream fault waits for its line alone and is met once, in the order asked for", () => {
  const faults = new Faults(new ManualClock());
  faults.await(LINE, "drop");
  faults.await(LINE, "unavailable");
  assert.equal(faults.takePending("4915100000002"), null);
  assert.deepEqual([1, 2, 3].map(() => faults.takePending(LINE)), ["drop", "unavailable", null]);
});

Deno.test("a timed fault ends by itself, and a shorter one does not cut it off", async () => {
  const clock = new ManualClock();
  const faults = new Faults(clock);
  faults.hold(LINE, "silence", 5_000);
  faults.hold(LINE, "silence", 1_000);
  assert.equal(faults.remainingMs(LINE, "hold_acks"), 0);
  await clock.advance(4_999);
  assert.equal(faults.remainingMs(LINE, "silence"), 1);
  await clock.advance(1);
  assert.equal(faults.remainingMs(LINE, "silence"), 0);
});

Deno.test("counted faults are used up one message at a time", () => {
  const faults = new Faults(new ManualClock());
  faults.add(LINE, "nack", "463", 2);
  faults.add(LINE, "nack", "479");
  assert.deepEqual([1, 2, 3, 4].map(() => faults.take(LINE, "nack")), ["463", "463", "479", null]);
  faults.add(LINE, "duplicate", true);
  assert.deepEqual([1, 2].map(() => faults.take(LINE, "duplicate")), [true, null]);
});

Deno.test("slow uploads are used up one upload at a time, each as slow as it was asked for", () => {
  const faults = new Faults(new ManualClock());
  faults.add(LINE, "slow_upload", 2_000, 2);
  faults.add(LINE, "slow_upload", 500);
  assert.equal(faults.take("4915100000002", "slow_upload"), null);
  assert.deepEqual([1, 2, 3, 4].map(() => faults.take(LINE, "slow_upload")), [2_000, 2_000, 500, null]);
});

Deno.test("each stream fault says what the real network says", () => {
  assert.equal(streamError("drop"), null);
  assert.equal(streamError("restart")!.attrs.code, "515");
  assert.equal(streamError("unavailable")!.attrs.code, "503");
  assert.equal(streamError("logout")!.attrs.code, "401");
  assert.deepEqual(streamError("replace")!.content, [{ tag: "conflict", attrs: { type: "replaced" } }]);
});
