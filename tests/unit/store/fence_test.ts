import assert from "node:assert/strict";
import { withFence } from "../../../src/store/fence.ts";
import { Change, key, StoreError } from "../../../src/store/kv.ts";
import { MemoryDisk, MemoryKv } from "../../support/memory_kv.ts";

const LEASE = key<number>("lease");
const ROW = key<string>("row");

/** Two processes on one disk, and the store of the first as the holder of the lease. */
async function heldByOne() {
  const disk = new MemoryDisk();
  const [kv, other] = [new MemoryKv(disk), new MemoryKv(disk)];
  const version = (await kv.commit(new Change().set(LEASE, 1)))!;
  let lost = 0;
  return { kv, other, store: withFence(kv, { key: LEASE, version }, () => lost++), losses: () => lost };
}

Deno.test("a holder's commits are written for as long as nobody took the lease", async () => {
  const { store, other, losses } = await heldByOne();
  assert.notEqual(await store.commit(new Change().set(ROW, "mine")), null);
  assert.equal((await other.get(ROW)).value, "mine");
  assert.equal(losses(), 0);
});

Deno.test("a check of its own that fails is a conflict, not a lost lease", async () => {
  const { store, other, losses } = await heldByOne();
  await other.commit(new Change().set(ROW, "somebody's"));
  assert.equal(await store.commit(new Change().checkAbsent(ROW).set(ROW, "mine")), null);
  assert.equal(losses(), 0);
});

for (
  const [how, taken] of [["taken", new Change().set(LEASE, 2)], ["given up", new Change().delete(LEASE)]] as const
) {
  Deno.test(`once the lease was ${how} nothing of the old holder is written, checked or not`, async () => {
    const { store, other, losses } = await heldByOne();
    const row = await store.get(ROW);
    await other.commit(taken);
    await assert.rejects(store.commit(new Change().set(ROW, "late")), { name: "Fenced" });
    await assert.rejects(store.commit(new Change().check(row).set(ROW, "late")), StoreError);
    assert.equal((await other.get(ROW)).value, null);
    assert.equal(losses(), 2);
  });
}
