import assert from "node:assert/strict";
import { withOrder } from "../../../../src/store/layers/order.ts";
import { Change, type Kv, StoreError } from "../../../../src/store/kv.ts";
import { MemoryDisk, MemoryKv } from "../../../support/memory_kv.ts";
import { testRuntime } from "../../../support/runtime.ts";

function appendTo(account: string): Change {
  const row = (order: string) => ({ kind: "set" as const, key: ["log", account, order], value: account });
  return new Change().ordered(["order", account], (order) => [row(order)]);
}

/** An instance that counts what it asks of its engine. */
function instanceOn(disk: MemoryDisk): { kv: Kv; engine: MemoryKv; asked: () => number } {
  const engine = new MemoryKv(disk);
  const kv = withOrder(engine, { runtime: testRuntime() });
  let commits = 0;
  const commit = engine.commit.bind(engine);
  engine.commit = (change) => (commits++, commit(change));
  return { kv, engine, asked: () => [commits, commits = 0][0]! };
}

Deno.test("a commit is not held up by another process that writes for another account", async () => {
  const disk = new MemoryDisk();
  const [a, b] = [instanceOn(disk), instanceOn(disk)];
  for (const { kv } of [a, b]) for (const account of ["1", "2"]) assert.ok(await kv.commit(appendTo(account)));
  assert.ok(await a.kv.commit(appendTo("1")));
  a.asked();
  await b.kv.commit(appendTo("2"));
  assert.ok(await a.kv.commit(appendTo("1")));
  assert.equal(a.asked(), 1);
  assert.ok(await b.kv.commit(appendTo("1")), "one that was overtaken takes the next place");
});

Deno.test("a commit that is overtaken without end is given up", async () => {
  const disk = new MemoryDisk();
  const { kv, engine } = instanceOn(disk);
  const other = instanceOn(disk).kv;
  await kv.commit(appendTo("1"));
  const commit = engine.commit.bind(engine);
  engine.commit = async (change) => {
    await other.commit(appendTo("1"));
    return await commit(change);
  };
  await assert.rejects(kv.commit(appendTo("1")), (error) => {
    assert.ok(error instanceof StoreError);
    return error.code === "unavailable";
  });
});
