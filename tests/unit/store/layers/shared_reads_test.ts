import assert from "node:assert/strict";
import { Change, type Key, type Kv } from "../../../../src/store/kv.ts";
import { shareReads } from "../../../../src/store/layers/shared_reads.ts";
import { MemoryKv } from "../../../support/memory_kv.ts";

const KEY: Key = ["a"];

/** A store that counts reads and holds each until it is let go. */
function heldReads(kv: Kv) {
  const held: (() => void)[] = [];
  const batches: number[] = [];
  return {
    batches,
    hasRead: () => held.length > 0,
    /** Lets the read that is in flight answer, once it has read. */
    letGo: async () => {
      while (held.length === 0) await Promise.resolve();
      held.shift()!();
    },
    getMany: async <T>(wanted: readonly Key[]) => {
      batches.push(wanted.length);
      const slots = await kv.getMany<T>(wanted);
      await new Promise<void>((resolve) => held.push(resolve));
      return slots;
    },
  };
}

Deno.test("readers of one key share a read, and other keys go with it", async () => {
  const kv = new MemoryKv();
  await kv.commit(new Change().set(KEY, "value"));
  const reads = heldReads(kv);
  const get = shareReads(reads);
  const all = [get(KEY), get(KEY), get(["b"]), get([1]), get(["1"])];
  await reads.letGo();
  const slots = await Promise.all(all);
  assert.deepEqual(reads.batches, [4]);
  assert.deepEqual(slots.map((slot) => slot.value), ["value", "value", null, null, null]);
  assert.deepEqual(slots.map((slot) => slot.key), [["a"], ["a"], ["b"], [1], ["1"]]);
});

Deno.test("an answer is never older than its question: who asks during a read waits for the next", async () => {
  const kv = new MemoryKv();
  await kv.commit(new Change().set(KEY, "old"));
  const reads = heldReads(kv);
  const get = shareReads(reads);
  const before = get(KEY);
  while (!reads.hasRead()) await Promise.resolve();
  await kv.commit(new Change().set(KEY, "new"));
  const after = get(KEY);
  await reads.letGo();
  assert.equal((await before).value, "old");
  await reads.letGo();
  assert.equal((await after).value, "new");
});
