import assert from "node:assert/strict";
import { breakOff, Faults, streamError } from "../../../../src/sandbox/world/faults.ts";
import { ManualClock, settle } from "../../../support/runtime.ts";

const LINE = "4915100000001";

Deno.test("a pending stream fault applies to its line only, once, in the order in which it was set", () => {
  const faults = new Faults(new ManualClock());
  faults.add(LINE, "stream", "drop");
  faults.add(LINE, "stream", "unavailable");
  assert.equal(faults.take("4915100000002", "stream"), null);
  assert.deepEqual([1, 2, 3].map(() => faults.take(LINE, "stream")), ["drop", "unavailable", null]);
});

Deno.test("a timed fault ends by itself, and a later, shorter one does not shorten it", async () => {
  const clock = new ManualClock();
  const faults = new Faults(clock);
  faults.hold(LINE, "silence", 5_000);
  faults.hold(LINE, "silence", 1_000);
  const ended: string[] = [];
  faults.after(LINE, "hold_acks", () => ended.push("there was none"));
  faults.after(LINE, "silence", () => ended.push("after a silence"));
  await clock.advance(4_999);
  assert.deepEqual([ended, faults.holds(LINE, "silence")], [["there was none"], true]);
  await clock.advance(1);
  assert.deepEqual([ended, faults.holds(LINE, "silence")], [["there was none", "after a silence"], false]);
});

Deno.test("lifting ends a line's faults at once, and no other line's", async () => {
  const clock = new ManualClock();
  const faults = new Faults(clock);
  const other = "4915100000002";
  const ended: string[] = [];
  for (const line of [LINE, other]) {
    faults.hold(line, "hold_acks", 5_000);
    faults.after(line, "hold_acks", () => ended.push(line));
    faults.add(line, "slow_upload", 5_000);
    void faults.upload(line).then(() => ended.push(`an upload of ${line}`));
  }
  faults.add(LINE, "stream", "unavailable", 3);
  faults.add(LINE, "nack", "463", 2);
  assert.equal(faults.take(LINE, "stream"), "unavailable");
  faults.lift(LINE);
  await settle();
  assert.deepEqual([ended, faults.take(LINE, "stream"), faults.take(LINE, "nack")], [
    [LINE, `an upload of ${LINE}`],
    null,
    null,
  ]);
  await clock.advance(5_000);
  assert.deepEqual(ended, [LINE, `an upload of ${LINE}`, other, `an upload of ${other}`]);
});

Deno.test("counted faults are used up one message at a time", () => {
  const faults = new Faults(new ManualClock());
  faults.add(LINE, "nack", "463", 2);
  faults.add(LINE, "nack", "479");
  assert.deepEqual([1, 2, 3, 4].map(() => faults.take(LINE, "nack")), ["463", "463", "479", null]);
  faults.add(LINE, "duplicate", true);
  assert.deepEqual([1, 2].map(() => faults.take(LINE, "duplicate")), [true, null]);
});

Deno.test("slow uploads are used up one upload at a time, each with its own delay", () => {
  const faults = new Faults(new ManualClock());
  faults.add(LINE, "slow_upload", 2_000, 2);
  faults.add(LINE, "slow_upload", 500);
  assert.equal(faults.take("4915100000002", "slow_upload"), null);
  assert.deepEqual([1, 2, 3, 4].map(() => faults.take(LINE, "slow_upload")), [2_000, 2_000, 500, null]);
});

Deno.test("each stream fault sends the real network's stream error", () => {
  const done: string[] = [];
  breakOff({ end: ({ tag }) => done.push(tag), cut: () => done.push("cut") }, "drop");
  assert.deepEqual(done, ["cut"]);
  assert.equal(streamError("restart").attrs.code, "515");
  assert.equal(streamError("unavailable").attrs.code, "503");
  assert.equal(streamError("logout").attrs.code, "401");
  assert.deepEqual(streamError("replace").content, [{ tag: "conflict", attrs: { type: "replaced" } }]);
});
