import assert from "node:assert/strict";
import { openDenoKv } from "../../../../src/store/deno_kv/deno_kv.ts";
import { Change, type Key, key, prefix } from "../../../../src/store/kv.ts";
import type { ChunkedKv } from "../../../../src/store/layers/chunk.ts";
import { withRecent } from "../../../../src/store/layers/cache.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";

const log = prefix<string>("log", "acc");
const sequence = key<number>("order", "acc");

/** Appends the texts in one commit. */
function append(...texts: string[]): Change {
  const change = new Change();
  for (const value of texts) {
    change.ordered(sequence, (order) => [{ kind: "set", key: [...log, order], value }]);
  }
  return change;
}

interface World {
  /** As the engine has it: what another process writes goes through it too. */
  raw: ChunkedKv;
  kv: ChunkedKv;
  clock: ManualClock;
  /** The rows behind this one, or all; and whether the engine was asked. */
  read(after?: Key, limit?: number): Promise<{ texts: string[]; keys: Key[]; asked: boolean }>;
}

async function withWorld(run: (world: World) => Promise<void>): Promise<void> {
  const runtime = testRuntime();
  const clock = new ManualClock();
  const raw = await openDenoKv(":memory:", { runtime });
  let asked = false;
  const kv = withRecent({
    ...raw,
    list(range, options) {
      asked = true;
      return raw.list(range, options);
    },
  }, { clock, families: new Set(["log"]) });
  const read: World["read"] = async (after, limit = 100) => {
    asked = false;
    const range = { prefix: log, ...(after ? { start: [...log, `${after.at(-1)}\0`] } : {}) };
    const rows = await Array.fromAsync(kv.list(range, { limit }));
    return { texts: rows.map(({ value }) => value), keys: rows.map((row) => row.key), asked };
  };
  try {
    await run({ raw, kv, clock, read });
  } finally {
    raw.close();
  }
}

Deno.test("whoever is at the end of a sequence reads what was committed since from memory, in order", async () => {
  await withWorld(async ({ kv, clock, read }) => {
    await kv.commit(append("a"));
    const first = await read();
    assert.deepEqual([first.texts, first.asked], [["a"], true]);
    await Promise.all([kv.commit(append("b", "c")), kv.commit(append("d"))]);
    const rest = await read(first.keys[0]);
    assert.deepEqual([rest.texts, rest.asked], [["b", "c", "d"], false]);
    const some = await read(first.keys[0], 2);
    assert.deepEqual([some.texts, some.asked], [["b", "c"], false]);
    assert.deepEqual([(await read(rest.keys[2])).texts, (await read(rest.keys[2])).asked], [[], false]);
    await clock.advance(1_000);
    assert.equal((await read(rest.keys[2])).asked, true, "the end is not believed for long");
  });
});

Deno.test("what was read from the engine is there for the next reader too, though its commit is not answered yet", async () => {
  const runtime = testRuntime();
  const raw = await openDenoKv(":memory:", { runtime });
  const written = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  let commits = 0;
  const kv = withRecent({
    ...raw,
    async commit(change, options) {
      const version = await raw.commit(change, options);
      if (++commits < 2) return version;
      written.resolve();
      await answered.promise;
      return version;
    },
  }, { clock: new ManualClock(), families: new Set(["log"]) });
  const after = (row: Key | null) =>
    Array.fromAsync(kv.list<string>({ prefix: log, ...(row && { start: [...log, `${row.at(-1)}\0`] }) }, {}));
  try {
    await kv.commit(append("a"));
    const late = kv.commit(append("b"));
    await written.promise;
    const [a, b] = await after(null);
    assert.deepEqual([a!.value, b!.value], ["a", "b"]);
    assert.deepEqual((await after(a!.key)).map(({ value }) => value), ["b"]);
    answered.resolve();
    await late;
    assert.deepEqual((await after(a!.key)).map(({ value }) => value), ["b"]);
  } finally {
    raw.close();
  }
});

Deno.test("what another process has written in between is not missed", async () => {
  await withWorld(async ({ raw, kv, read }) => {
    await kv.commit(append("a"));
    const { keys: [a] } = await read();
    await raw.commit(append("theirs"));
    await kv.commit(append("b"));
    assert.deepEqual((await read(a)).texts, ["theirs", "b"]);
  });
});

Deno.test("a commit that fails leaves nothing to read, and what is changed or removed is not read as it was", async () => {
  await withWorld(async ({ kv, read }) => {
    await kv.commit(append("a"));
    const { keys: [a] } = await read();
    assert.equal(await kv.commit(append("lost").check({ key: ["x"], version: "0".repeat(20) })), null);
    assert.deepEqual((await read(a)).texts, []);
    await kv.commit(append("b", "c"));
    const { keys: [b, c] } = await read(a);
    await kv.commit(new Change().delete(b!).set(c!, "changed"));
    assert.deepEqual((await read(a)).texts, ["changed"]);
  });
});

Deno.test("long rows and many rows lie in the engine alone, and are read there", async () => {
  await withWorld(async ({ kv, read }) => {
    await kv.commit(append("a"));
    const { keys: [a] } = await read();
    const many = Array.from({ length: 50 }, (_, i) => String(i));
    await kv.commit(append(...many));
    assert.deepEqual((await read(a)).texts, many);
    const long = "x".repeat(100_000);
    await kv.commit(append(long));
    await kv.commit(append("z"));
    assert.deepEqual((await read(a)).texts, [...many, long, "z"]);
  });
});
