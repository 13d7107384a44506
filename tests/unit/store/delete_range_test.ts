import assert from "node:assert/strict";
import { deleteKeys, deleteRange } from "../../../src/store/delete_range.ts";
import { Change, key, type Kv, prefix } from "../../../src/store/kv.ts";
import { COMMIT_LIMITS, isWithin, loadOf } from "../../../src/store/limits.ts";
import { MemoryKv } from "../../support/memory_kv.ts";

/** A store with so many rows below "a", and what is committed to it from then on. */
async function filled(rows: number, suffix = "") {
  const memory = new MemoryKv();
  for (let i = 0; i < rows; i++) await memory.commit(new Change().set(key<number>("a", i, suffix), i));
  await memory.commit(new Change().set(key<string>("b", 1), "stays"));
  const commits: Change[] = [];
  const kv: Kv = {
    ...memory,
    commit: (change) => {
      commits.push(change);
      return memory.commit(change);
    },
    close: () => {},
  };
  const left = async () =>
    (await Array.fromAsync(memory.list({ prefix: prefix<number>("a") }))).map(({ value }) => value);
  return { kv, memory, commits, left };
}

Deno.test("a range goes in several commits, and nothing beside it", async () => {
  const { kv, memory, commits, left } = await filled(1_200);
  assert.equal(await deleteRange(kv, { prefix: prefix("a") }), 1_200);
  assert.deepEqual(await left(), []);
  assert.equal((await memory.get(key<string>("b", 1))).value, "stays");
  assert.ok(commits.length > 1);
  assert.equal(await deleteRange(kv, { prefix: prefix("a") }), 0);
});

Deno.test("long keys go in commits that every engine takes", async () => {
  const { kv, commits } = await filled(200, "x".repeat(1_900));
  assert.equal(await deleteRange(kv, { prefix: prefix("a") }), 200);
  assert.deepEqual(commits.filter((change) => !isWithin(loadOf(change), COMMIT_LIMITS)), []);
});

Deno.test("the signal ends it between two commits", async () => {
  const { kv, left } = await filled(1_200);
  const stopping = new AbortController();
  const commit = kv.commit;
  kv.commit = (change) => {
    stopping.abort();
    return commit(change);
  };
  const deleted = await deleteRange(kv, { prefix: prefix("a") }, { signal: stopping.signal });
  assert.equal((await left()).length, 1_200 - deleted);
  assert.ok(deleted > 0 && deleted < 1_200);
});

Deno.test("chosen rows go in the order in which they come", async () => {
  const { kv, commits, left } = await filled(4);
  assert.equal(await deleteKeys(kv, [key("a", 3, ""), key("a", 1, "")]), 2);
  assert.deepEqual(commits.flatMap(({ mutations }) => mutations.map((mutation) => mutation.key[1])), [3, 1]);
  assert.deepEqual(await left(), [0, 2]);
});
