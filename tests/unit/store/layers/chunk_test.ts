import assert from "node:assert/strict";
import { type ChunkedKv, withChunks } from "../../../../src/store/layers/chunk.ts";
import { denoKvEngine } from "../../../../src/store/deno_kv/deno_kv.ts";
import { storeKeys } from "../../../../src/store/layers/rows.ts";
import { Change, type Kv } from "../../../../src/store/kv.ts";
import { type TestRuntime, testRuntime } from "../../../support/runtime.ts";

const HOUR_MS = 60 * 60 * 1000;
const LARGE = "x".repeat(100_000);
const HUGE = "y".repeat(2_000_000);

interface Bench {
  kv: ChunkedKv;
  engine: Kv;
  native: Deno.Kv;
  runtime: TestRuntime;
}

async function withBench(run: (bench: Bench) => Promise<void>): Promise<void> {
  const runtime = testRuntime();
  const native = await Deno.openKv(":memory:");
  const engine = denoKvEngine({ writes: native, reads: native }, { runtime });
  try {
    await run({ kv: withChunks(engine, { runtime }), engine, native, runtime });
  } finally {
    native.close();
  }
}

async function count(native: Deno.Kv, ...prefixes: (readonly unknown[])[]): Promise<number[]> {
  return await Promise.all(prefixes.map(async (prefix) => {
    let rows = 0;
    for await (const _ of native.list({ prefix: prefix as Deno.KvKey })) rows++;
    return rows;
  }));
}

const ROWS = [storeKeys.chunk("", 0, 0).slice(0, 2), storeKeys.blobs(), storeKeys.stagings()];
const always = new AbortController().signal;

Deno.test("small values need no chunks", () =>
  withBench(async ({ kv, native }) => {
    await kv.commit(new Change().set(["k"], "x".repeat(30_000)));
    assert.deepEqual(await count(native, ...ROWS), [0, 0, 0]);
  }));

Deno.test("the sweep takes chunks of values that were overwritten or deleted, and no others", () =>
  withBench(async ({ kv, native }) => {
    await kv.commit(new Change().set(["kept"], LARGE).set(["overwritten"], LARGE).set(["shrunk"], LARGE));
    await kv.commit(new Change().set(["huge"], HUGE).set(["deleted"], HUGE));
    await kv.commit(new Change().set(["overwritten"], HUGE).set(["shrunk"], "small").delete(["deleted"]));
    assert.equal(await kv.sweepChunks(always), 3);
    const parts = (text: string) => Math.ceil((text.length + 10) / (60 * 1024));
    assert.deepEqual(await count(native, ...ROWS), [parts(LARGE) + 2 * parts(HUGE), 3, 0]);
    const left = await kv.getMany<string>([["kept"], ["huge"], ["overwritten"], ["shrunk"]]);
    assert.deepEqual(left.map((slot) => slot.value?.length), [LARGE.length, HUGE.length, HUGE.length, 5]);
    for (const slot of left) await kv.commit(new Change().delete(slot.key));
    assert.equal(await kv.sweepChunks(always), 3);
    assert.deepEqual(await count(native, ...ROWS), [0, 0, 0]);
  }));

Deno.test("a commit that fails its check leaves chunks for the sweep only", () =>
  withBench(async ({ kv, native }) => {
    await kv.commit(new Change().set(["taken"], 1));
    assert.equal(await kv.commit(new Change().checkAbsent(["taken"]).set(["k"], HUGE)), null);
    assert.equal(await kv.commit(new Change().checkAbsent(["taken"]).set(["k"], LARGE)), null);
    await kv.sweepChunks(always);
    assert.deepEqual(await count(native, ...ROWS), [0, 0, 0]);
  }));

/** The engine, where the first commit that is no staging commit is held until it is released. */
function heldEngine(engine: Kv, when: (change: Change) => boolean) {
  const reached = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  let held = false;
  const kv: Kv = {
    ...engine,
    async commit(change) {
      if (!held && when(change)) {
        held = true;
        reached.resolve();
        await release.promise;
      }
      return await engine.commit(change);
    },
  };
  return { kv, reached: reached.promise, release: release.resolve };
}

const namesOwner = (change: Change) => change.mutations.some(({ key }) => key[0] === "k");

Deno.test("the sweep leaves chunks alone while their commit is on its way", () =>
  withBench(async ({ engine, kv, runtime }) => {
    const held = heldEngine(engine, namesOwner);
    const writer = withChunks(held.kv, { runtime });
    const committed = writer.commit(new Change().set(["k"], HUGE));
    await held.reached;
    assert.equal(await kv.sweepChunks(always), 0);
    assert.equal((await kv.get(["k"])).value, null);
    held.release();
    assert.ok(await committed);
    assert.equal((await kv.get<string>(["k"])).value?.length, HUGE.length);
  }));

Deno.test("a commit that was taken for abandoned writes its chunks again", () =>
  withBench(async ({ engine, kv, runtime }) => {
    const held = heldEngine(engine, namesOwner);
    const writer = withChunks(held.kv, { runtime });
    const committed = writer.commit(new Change().set(["k"], HUGE));
    await held.reached;
    await runtime.clock.advance(2 * HOUR_MS);
    assert.equal(await kv.sweepChunks(always), 1);
    held.release();
    assert.ok(await committed);
    assert.equal((await kv.get<string>(["k"])).value?.length, HUGE.length);
    assert.equal(await kv.sweepChunks(always), 0);
  }));

Deno.test("the sweep goes through many values slice by slice", () =>
  withBench(async ({ kv, native }) => {
    for (let i = 0; i < 220; i++) {
      const change = new Change();
      for (let j = 0; j < 5; j++) change.set(["k", i, j], LARGE);
      await kv.commit(change);
    }
    const gone = new Change();
    for (let i = 0; i < 220; i++) gone.delete(["k", i, 4]);
    await kv.commit(gone);
    let removed = 0;
    for (let run = 0; run < 2; run++) removed += await kv.sweepChunks(always);
    assert.equal(removed, 220);
    assert.deepEqual((await count(native, ...ROWS)).slice(1), [880, 0]);
  }));

Deno.test("a list answers with what is there when values change under it", () =>
  withBench(async ({ kv }) => {
    for (const name of ["a", "b", "c"]) await kv.commit(new Change().set(["k", name], LARGE));
    const seen: string[] = [];
    for await (const row of kv.list<string>({ prefix: ["k"] })) {
      seen.push(`${String(row.key[1])} ${row.value.length}`);
      if (row.key[1] !== "a") continue;
      await kv.commit(new Change().delete(["k", "b"]).set(["k", "c"], HUGE));
      await kv.sweepChunks(always);
    }
    assert.deepEqual(seen, [`a ${LARGE.length}`, `c ${HUGE.length}`]);
  }));
