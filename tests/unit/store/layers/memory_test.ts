import assert from "node:assert/strict";
import { openDenoKv } from "../../../../src/store/deno_kv/deno_kv.ts";
import { Change, key, type KeyOf, prefix, StoreError } from "../../../../src/store/kv.ts";
import type { ChunkedKv } from "../../../../src/store/layers/chunk.ts";
import { withMemory } from "../../../../src/store/layers/cache.ts";
import { testRuntime } from "../../../support/runtime.ts";

const row = (name: string): KeyOf<string> => key("kept", name);
const brought = (name: string): KeyOf<string> => key("brought", name);
const other = (name: string): KeyOf<string> => key("other", name);

interface World {
  /** As the engine has it: what another process writes goes through it too. */
  raw: ChunkedKv;
  kv: ChunkedKv;
  clock: ReturnType<typeof testRuntime>["clock"];
  /** Lists, and rows that were asked of the engine since the last call. */
  asked(): number;
  /** Called before each read of the engine is answered. */
  beforeAnswer(run: () => Promise<void>): void;
}

async function withWorld(run: (world: World) => Promise<void>): Promise<void> {
  const runtime = testRuntime();
  const { clock } = runtime;
  const raw = await openDenoKv(":memory:", { runtime });
  let count = 0;
  let before = () => Promise.resolve();
  const watched: ChunkedKv = {
    ...raw,
    async get(key) {
      count++;
      const slot = await raw.get(key);
      await before();
      return slot as never;
    },
    async getMany(keys) {
      count += keys.length;
      return await raw.getMany(keys);
    },
    async *list(range, options) {
      count++;
      yield* raw.list(range, options);
      await before();
    },
  };
  const asked = () => {
    const now = count;
    count = 0;
    return now;
  };
  try {
    const kv = withMemory(watched, {
      families: new Set(["kept", "brought"]),
      absences: new Set(["kept"]),
      rare: new Set(["rare"]),
      clock,
    });
    await run({ raw, kv, clock, asked, beforeAnswer: (then) => before = then });
  } finally {
    raw.close();
  }
}

Deno.test("a row that was written or read is answered from memory, with its version, and so is one that is not there", async () => {
  await withWorld(async ({ raw, kv, asked }) => {
    const version = await kv.commit(new Change().set(row("a"), "one").set(other("a"), "else"));
    assert.deepEqual(await kv.get(row("a")), { key: row("a"), value: "one", version });
    assert.equal(asked(), 0);
    assert.equal((await kv.get(row("none"))).version, null);
    assert.deepEqual(
      (await kv.getMany([row("none"), other("a"), row("a")])).map(({ value }) => value),
      [null, "else", "one"],
    );
    assert.equal(asked(), 2);
    await kv.commit(new Change().delete(row("a")));
    assert.deepEqual(await kv.get(row("a")), { key: row("a"), value: null, version: null });
    assert.equal(asked(), 0);
    assert.equal((await raw.get(row("a"))).value, null);
  });
});

Deno.test("a row that other processes may make is asked for again while it is not there", async () => {
  await withWorld(async ({ raw, kv, asked }) => {
    assert.equal((await kv.get(brought("a"))).value, null);
    await raw.commit(new Change().set(brought("a"), "one"));
    assert.equal((await kv.get(brought("a"))).value, "one");
    assert.equal(asked(), 2);
    await kv.get(brought("a"));
    assert.equal(asked(), 0);
    await kv.commit(new Change().delete(brought("a")));
    await raw.commit(new Change().set(brought("a"), "two"));
    assert.equal((await kv.get(brought("a"))).value, "two");
  });
});

Deno.test("what another process wrote is seen after a check failed on it, and after a list found it", async () => {
  await withWorld(async ({ raw, kv }) => {
    await kv.commit(new Change().set(row("a"), "one").set(row("b"), "one"));
    await raw.commit(new Change().set(row("a"), "two").set(row("b"), "two"));
    const stale = await kv.get(row("a"));
    assert.equal(stale.value, "one");
    assert.equal(await kv.commit(new Change().check(stale).set(row("c"), "lost")), null);
    assert.equal((await kv.get(row("a"))).value, "two");
    assert.equal((await kv.get(row("c"))).value, null);
    assert.equal((await kv.get(row("b"))).value, "one");
    await Array.fromAsync(kv.list({ prefix: prefix("kept") }));
    assert.equal((await kv.get(row("b"))).value, "two");
  });
});

Deno.test("a read that a commit overtakes is not remembered", async () => {
  await withWorld(async ({ kv, beforeAnswer }) => {
    beforeAnswer(async () => {
      beforeAnswer(() => Promise.resolve());
      await kv.commit(new Change().set(row("a"), "new"));
    });
    assert.equal((await kv.get(row("a"))).value, null);
    assert.equal((await kv.get(row("a"))).value, "new");
  });
});

Deno.test("a row that is read while it is being written is not remembered: it may have changed before that is known", async () => {
  await withWorld(async ({ raw }) => {
    const [asked, landed, known] = [1, 2, 3].map(() => Promise.withResolvers<void>());
    const kv = withMemory({
      ...raw,
      async commit(change) {
        await asked!.promise;
        const version = await raw.commit(change);
        landed!.resolve();
        await known!.promise;
        return version;
      },
    }, { families: new Set(["kept"]), absences: new Set(), rare: new Set(), clock: testRuntime().clock });
    await raw.commit(new Change().set(row("a"), "one"));
    const writing = kv.commit(new Change().set(row("a"), "two"));
    assert.equal((await kv.get(row("a"))).value, "one");
    asked!.resolve();
    await landed!.promise;
    assert.equal((await kv.get(row("a"))).value, "two");
    known!.resolve();
    await writing;
    assert.equal((await kv.get(row("a"))).value, "two");
  });
});

Deno.test("after a commit of which nobody knows whether it was written, the engine is asked", async () => {
  await withWorld(async ({ raw }) => {
    const doubtful = withMemory({
      ...raw,
      async commit(change) {
        const version = await raw.commit(change);
        if (change.checks.length > 0) throw new StoreError("unavailable", "the answer was lost");
        return version;
      },
    }, { families: new Set(["kept"]), absences: new Set(["kept"]), rare: new Set(), clock: testRuntime().clock });
    await doubtful.commit(new Change().set(row("a"), "one"));
    const slot = await doubtful.get(row("a"));
    await assert.rejects(doubtful.commit(new Change().check(slot).set(row("a"), "two")), StoreError);
    assert.equal((await doubtful.get(row("a"))).value, "two");
  });
});

Deno.test("a list that found nothing is not asked for again within a second, unless something is written there", async () => {
  await withWorld(async ({ raw, kv, clock, asked, beforeAnswer }) => {
    const rare = (name: string): KeyOf<string> => key("rare", "ses_1", name);
    const count = async (line = "ses_1") =>
      (await Array.fromAsync(kv.list({ prefix: prefix<string>("rare", line) }))).length;
    assert.equal(await count() + await count(), 0);
    assert.equal(asked(), 1);
    await kv.commit(new Change().set(rare("a"), "one"));
    assert.deepEqual([await count(), await count("ses_2"), await count("ses_2"), asked()], [1, 0, 0, 2]);
    await kv.commit(new Change().delete(rare("a")));
    assert.equal(await count(), 0);
    await raw.commit(new Change().set(rare("b"), "of another process"));
    assert.equal(await count(), 0);
    await clock.advance(1_000);
    assert.equal(await count(), 1);

    await kv.commit(new Change().delete(rare("b")));
    beforeAnswer(async () => {
      beforeAnswer(() => Promise.resolve());
      await kv.commit(new Change().set(rare("c"), "written while the list was answered"));
    });
    assert.equal(await count(), 0);
    assert.equal(await count(), 1);
  });
});
