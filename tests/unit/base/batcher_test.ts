import assert from "node:assert/strict";
import { Batcher } from "../../../src/base/batcher.ts";
import { ManualClock } from "../../support/runtime.ts";

Deno.test("what arrives while a flush is in flight goes into the next one together, in order", async () => {
  const flushed: number[][] = [];
  const gates: (() => void)[] = [];
  const batcher = new Batcher<number, number>(async (items) => {
    flushed.push([...items]);
    await new Promise<void>((resolve) => gates.push(resolve));
    return items.map((item) =>
      item < 0 ? { status: "rejected", reason: new Error(`no ${item}`) } : { status: "fulfilled", value: item * 10 }
    );
  });
  const first = [1, 2].map((item) => batcher.add(item));
  await Promise.resolve();
  const next = [3, -4, 5].map((item) => batcher.add(item));
  const failed = assert.rejects(next[1]!, /no -4/);
  gates.shift()!();
  assert.deepEqual(await Promise.all(first), [10, 20]);
  await new Promise((resolve) => setImmediate(resolve));
  gates.shift()!();
  assert.deepEqual(await Promise.all([next[0], next[2]]), [30, 50]);
  await failed;
  assert.deepEqual(flushed, [[1, 2], [3, -4, 5]]);
});

Deno.test("a flush that throws fails its own items and no later ones", async () => {
  let calls = 0;
  const batcher = new Batcher<number, number>((items) => {
    if (++calls === 1) throw new Error("first flush");
    return Promise.resolve(items.map((item) => ({ status: "fulfilled", value: item })));
  });
  await Promise.all([
    assert.rejects(batcher.add(1), /first flush/),
    assert.rejects(batcher.add(2), /first flush/),
  ]);
  assert.equal(await batcher.add(3), 3);
});

Deno.test("a take that throws fails the items that it saw and no later ones", async () => {
  const take = (waiting: readonly number[]) => {
    if (waiting.includes(0)) throw new Error("no zero");
    return waiting.length;
  };
  const batcher = new Batcher<number, number>(
    (items) => Promise.resolve(items.map((item) => ({ status: "fulfilled", value: item }))),
    { take },
  );
  await Promise.all([
    assert.rejects(batcher.add(0), /no zero/),
    assert.rejects(batcher.add(1, { lingerUntil: new Promise(() => {}) }), /no zero/),
  ]);
  assert.equal(await batcher.add(2), 2);
});

Deno.test("an item that takes too long fails, and is not flushed any more if it still waits", async () => {
  const clock = new ManualClock();
  const flushed: number[] = [];
  const answered = Promise.withResolvers<void>();
  const batcher = new Batcher<number, number>(async (items) => {
    flushed.push(...items);
    await answered.promise;
    return items.map((value) => ({ status: "fulfilled", value }));
  }, { limit: { clock, ms: 10_000, late: () => new Error("late") } });
  const early = [batcher.add(1)];
  await clock.advance(500);
  early.push(batcher.add(2), batcher.add(3, { lingerUntil: new Promise(() => {}) }));
  await clock.advance(5_000);
  const later = batcher.add(4);
  const failing = Promise.all(early.map((each) => assert.rejects(each, /late/)));
  await clock.advance(4_500);
  await failing;
  answered.resolve();
  assert.equal(await later, 4);
  assert.deepEqual(flushed, [1, 4]);
  assert.equal(clock.nextTimer(), null);
});
