/** The contract of `src/store/kv.ts` as tests over any engine, always with two instances open on the same data. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { Change, type Key, type KeyOf, type Kv, type Mutation, type Range } from "../../src/store/kv.ts";
import { COMMIT_LIMITS } from "../../src/store/limits.ts";
import { testRuntime } from "../support/runtime.ts";
import { tempFolder } from "../support/temp_folder.ts";

export interface Engine {
  name: string;
  /** How often each of four writers raises the same row, 150 unless given: where every conflict costs much, fewer. */
  conflicts?: number;
  /** Opens one more instance on the data at `path`; `now` is where its clock stands. */
  open(path: string, runtime: ReturnType<typeof testRuntime>): Promise<Kv>;
}

/** Where the commits of these tests take their places. */
const SEQUENCE: KeyOf<number> = ["sequence", 1];

/** A change that checks so many rows that are not there. */
function absent(count: number): Change {
  const change = new Change();
  for (let i = 0; i < count; i++) change.checkAbsent(["c", i]);
  return change;
}

/** Two instances on the same data, and a way to open more. */
interface Bench {
  a: Kv;
  b: Kv;
  open(seed: number): Promise<Kv>;
  openAt(seed: number, now: number): Promise<Kv>;
}

async function withBench(engine: Engine, run: (bench: Bench) => Promise<void>): Promise<void> {
  await using temp = await tempFolder();
  const opened: Kv[] = [];
  const openAt = async (seed: number, now?: number) => {
    const runtime = testRuntime(seed);
    if (now !== undefined) await runtime.clock.advance(now - runtime.clock.now());
    const kv = await engine.open(join(temp.path, "store.sqlite3"), runtime);
    opened.push(kv);
    return kv;
  };
  try {
    await run({ a: await openAt(1), b: await openAt(2), open: openAt, openAt });
  } finally {
    for (const kv of opened) kv.close();
  }
}

async function rowsOf<T>(kv: Kv, range: Range<T>, options = {}): Promise<{ key: Key; value: T }[]> {
  const rows: { key: Key; value: T }[] = [];
  for await (const row of kv.list(range, options)) rows.push({ key: row.key, value: row.value });
  return rows;
}

/** Registers the contract's tests for one engine. */
export function kvContract(engine: Engine): void {
  const { conflicts = 150 } = engine;
  const test = (sentence: string, run: (bench: Bench) => Promise<void>) =>
    Deno.test(`${engine.name}: ${sentence}`, () => withBench(engine, run));

  test("keys sort part by part, in the order of Deno KV", async ({ a, b }) => {
    const sorted: Key[] = [
      ["k", ""],
      ["k", "a"],
      ["k", "a", 1],
      ["k", "ab"],
      ["k", -1.5],
      ["k", 2],
      ["k", 10],
    ];
    const change = new Change();
    for (const key of sorted.toReversed()) change.set(key, "x");
    assert.ok(await a.commit(change));
    assert.deepEqual((await rowsOf(b, { prefix: ["k"] })).map((row) => row.key), sorted);
    assert.deepEqual(
      (await rowsOf(b, { prefix: ["k"] }, { reverse: true })).map((row) => row.key),
      sorted.toReversed(),
    );
  });

  test("a list keeps to its prefix, start, end and limit, in both directions, over many rounds", async ({ a, b }) => {
    const change = new Change().set(["m", 9], 9).set(["o", 0], 0).set(["n"], "the prefix itself is no row of it");
    for (let i = 0; i < 450; i++) change.set(["n", i], i);
    await a.commit(change);
    const values = async (range: Range<number>, options = {}) => (await rowsOf(b, range, options)).map((r) => r.value);
    const from = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i);
    assert.deepEqual(await values({ prefix: ["n"] }), from(0, 450));
    assert.deepEqual(await values({ prefix: ["n"], start: ["n", 440] }), from(440, 10));
    assert.deepEqual(await values({ prefix: ["n"], end: ["n", 3] }), [0, 1, 2]);
    assert.deepEqual(await values({ prefix: ["n"], start: ["n", 5], end: ["n", 8] }), [5, 6, 7]);
    assert.deepEqual(await values({ prefix: ["n"], start: ["n", 5], end: ["n", 8] }, { reverse: true }), [7, 6, 5]);
    assert.deepEqual(await values({ prefix: ["n"] }, { limit: 2 }), [0, 1]);
    assert.deepEqual(await values({ prefix: ["n"] }, { limit: 2, reverse: true }), [449, 448]);
    assert.deepEqual(await values({ prefix: ["n"] }, { limit: 0 }), []);
    assert.deepEqual(await values({ prefix: ["none"] }), []);
  });

  test("one instance reads at once what the other has committed", async ({ a, b }) => {
    for (let i = 0; i < 20; i++) {
      await a.commit(new Change().set(["k"], i));
      assert.equal((await b.get<number>(["k"])).value, i);
    }
  });

  test("an absent key reads as two nulls, a deleted one too", async ({ a, b }) => {
    assert.deepEqual(await a.get(["k"]), { key: ["k"], value: null, version: null });
    await a.commit(new Change().set(["k"], 1));
    await a.commit(new Change().delete(["k"]));
    assert.deepEqual(await b.get(["k"]), { key: ["k"], value: null, version: null });
  });

  test("many keys read as slots in the order of the keys", async ({ a, b }) => {
    const change = new Change();
    for (let i = 0; i < 35; i += 2) change.set(["k", i], i);
    await a.commit(change);
    const slots = await b.getMany<number>(Array.from({ length: 35 }, (_, i) => ["k", i]));
    assert.deepEqual(slots.map((slot) => slot.value), Array.from({ length: 35 }, (_, i) => i % 2 ? null : i));
    assert.deepEqual(await b.getMany([]), []);
  });

  test("a commit answers the version of what it has set, alone, with others, with large values and in order", async ({ a, b }) => {
    const large = "x".repeat(2_000_000);
    const changes = [
      new Change().set(["k", 0], 1),
      new Change().set(["k", 1], 1).add(["n"], 1),
      new Change().set(["k", 2], large.slice(0, 100_000)),
      new Change().set(["k", 3], large),
      new Change().set(["k", 4], 1).ordered(SEQUENCE, (order) => [{ kind: "set", key: ["log", order], value: 1 }]),
    ];
    const versions = await Promise.all(changes.map((change) => a.commit(change)));
    versions.push(await a.commit(new Change().set(["k", 5], 1)));
    const slots = await b.getMany(versions.map((_, i) => ["k", i]));
    assert.deepEqual(slots.map((slot) => slot.version), versions);
    for (const slot of slots) assert.ok(await b.commit(new Change().check(slot).delete(slot.key)));
  });

  test("a commit with a failed check writes nothing and says so", async ({ a, b }) => {
    await a.commit(new Change().set(["k"], 1));
    const seen = await b.get(["k"]);
    await a.commit(new Change().set(["k"], 1));
    assert.equal(await b.commit(new Change().check(seen).set(["k"], 2).set(["other"], 2).add(["n"], 1)), null);
    assert.equal(await b.commit(new Change().checkAbsent(["k"]).set(["other"], 2)), null);
    assert.deepEqual((await a.getMany([["k"], ["other"], ["n"]])).map((slot) => slot.value), [1, null, null]);
    assert.ok(await b.commit(new Change().check(await b.get(["k"])).checkAbsent(["other"]).set(["other"], 3)));
  });

  test("a commit that lingers is one as any other, with others and alone, refused or not", async ({ a, b }) => {
    const lingerUntil = Promise.resolve();
    const key = ["k", "lingering"];
    const large = "x".repeat(100_000);
    const alone = await a.commit(new Change().checkAbsent(key).set(key, large), { lingerUntil });
    const slot = await b.get(key);
    assert.deepEqual([slot.version, slot.value], [alone, large]);
    assert.equal(await a.commit(new Change().checkAbsent(key).set(key, 2), { lingerUntil }), null);
    const [version] = await Promise.all([
      a.commit(new Change().check(slot).delete(key), { lingerUntil: new Promise(() => {}) }),
      a.commit(new Change().set(["k", "another"], 1)),
    ]);
    assert.notEqual(version, null);
    assert.equal((await b.get(key)).version, null);
  });

  test("of two commits that each need the other's key absent, one is refused", async ({ a, b }) => {
    let both = 0;
    for (let i = 0; i < 30; i++) {
      const versions = await Promise.all([
        a.commit(new Change().checkAbsent(["x", i]).set(["y", i], 1)),
        b.commit(new Change().checkAbsent(["y", i]).set(["x", i], 1)),
      ]);
      if (versions.every((version) => version !== null)) both++;
      assert.equal((await rowsOf(a, { prefix: ["x"], start: ["x", i] })).length, versions[1] === null ? 0 : 1);
    }
    assert.equal(both, 0);
  });

  test("commits that check and write the same rows in any order wait for each other in no circle", async ({ a, b }) => {
    const keys = Array.from({ length: 12 }, (_, i): Key => ["row", i]);
    await a.commit(keys.reduce((change, key) => change.set(key, 0), new Change()));
    const turn = async (kv: Kv, i: number) => {
      const seen = await kv.get<number>(keys[i % keys.length]!);
      const change = new Change().check(seen);
      for (let n = 0; n < 4; n++) change.set<number>(keys[(i * 7 + n * 5) % keys.length]!, i);
      return await kv.commit(change);
    };
    const versions = await Promise.all(Array.from({ length: 80 }, (_, i) => turn(i % 2 ? a : b, i)));
    assert.ok(versions.some((version) => version !== null));
  });

  test("what is past the limits is refused as a mistake, and nothing is written", async ({ a, b }) => {
    const most = absent(a.mostChecks).set(["most"], 1);
    const checks = absent(a.mostChecks + 1).set(["k"], 1);
    const mutations = new Change().set(["k"], 1);
    for (let i = 0; i < 900; i++) mutations.set(["m", i], i);
    const refused = [
      checks,
      mutations,
      new Change().set(["k"], 1).set(["x".repeat(2048)], 1),
      new Change().set(["k"], 1).set([], 1),
      new Change().set(["k"], 1).set(["f"], { run() {} }),
      new Change().set(["k"], 1).set(["f"], { pad: "x".repeat(100_000), run() {} }),
      new Change().set(["k"], 1).set(["f"], 2n ** 63n),
    ];
    for (const [i, change] of refused.entries()) {
      const isMistake = (error: unknown) => error instanceof TypeError || error instanceof RangeError;
      await assert.rejects(a.commit(change), isMistake, `change ${i}`);
    }
    assert.equal((await b.get(["k"])).value, null);
    assert.ok(a.mostChecks >= COMMIT_LIMITS.checks);
    assert.notEqual(await a.commit(most), null);
    await assert.rejects(rowsOf(b, { prefix: [] }), RangeError);
  });

  test("a mistake in one of many concurrent commits leaves the others alone", async ({ a, b }) => {
    const good = Array.from({ length: 20 }, (_, i) => a.commit(new Change().set(["k", i], i)));
    const bad = a.commit(new Change().set(["f"], { run() {} }));
    const more = Array.from({ length: 20 }, (_, i) => a.commit(new Change().set(["k", 20 + i], i)));
    await assert.rejects(bad, TypeError);
    assert.ok((await Promise.all([...good, ...more])).every((ok) => ok));
    assert.equal((await rowsOf(b, { prefix: ["k"] })).length, 40);
  });

  test("a failed check in one of many concurrent commits leaves the others alone", async ({ a, b }) => {
    await b.commit(new Change().set(["taken"], 1));
    const commits = Array.from({ length: 40 }, (_, i) => {
      const change = new Change().set(["k", i], i).add(["n"], 1);
      return a.commit(i % 10 === 5 ? change.checkAbsent(["taken"]) : change);
    });
    const results = await Promise.all(commits);
    assert.deepEqual(results.map((version) => version !== null), Array.from({ length: 40 }, (_, i) => i % 10 !== 5));
    assert.equal((await b.get(["n"])).value, 36n);
    assert.equal((await rowsOf(b, { prefix: ["k"] })).length, 36);
  });

  test("concurrent commits to one key act as if one came after the other", async ({ a, b }) => {
    const first = await Promise.all(
      Array.from({ length: 10 }, (_, i) => a.commit(new Change().checkAbsent(["k"]).set(["k"], i))),
    );
    assert.equal(first.filter((ok) => ok).length, 1);
    await Promise.all(Array.from({ length: 10 }, (_, i) => a.commit(new Change().set(["last"], i))));
    assert.equal((await b.get(["last"])).value, 9);
    await Promise.all([a.commit(new Change().set(["n"], 5n)), a.commit(new Change().add(["n"], 1))]);
    assert.equal((await b.get(["n"])).value, 6n);
  });

  test("values come back as they were, whatever can be cloned", async ({ a, b }) => {
    const pooled = Buffer.from("a few bytes out of a shared pool");
    let deep: unknown = "core";
    for (let i = 0; i < 500; i++) deep = [deep];
    const values: unknown[] = [
      null,
      0,
      "",
      "😀 and a lone \ud800",
      true,
      new Uint8Array([1, 2, 3]),
      { undefinedStays: undefined, nothing: null, list: [1, , 3], nested: { big: 12n, date: new Date(5) } },
      new Map<unknown, unknown>([["a", new Set([1, 2])], [{ k: 1 }, "v"]]),
      { part: new Uint8Array([9, 8, 7, 6]).subarray(1, 3) },
      deep,
    ];
    for (const [i, value] of values.entries()) await a.commit(new Change().set(["k", i], value));
    await a.commit(new Change().set(["pooled"], { pooled }));
    for (const [i, value] of values.entries()) assert.deepEqual((await b.get(["k", i])).value, value);
    const read = (await b.get<{ pooled: Uint8Array }>(["pooled"])).value;
    assert.deepEqual(read, { pooled: new Uint8Array(pooled) });
    assert.ok(read && read.pooled.buffer.byteLength < 1000, "the rest of the pool is not stored");
  });

  test("values around and far over the engine's limit are set, read, listed, overwritten, deleted", async ({ a, b }) => {
    const sizes = [1, 30_000, 61_431, 61_432, 61_433, 61_439, 61_440, 61_441, 65_535, 65_536, 200_000, 5_000_000];
    const bytes = (size: number, fill: number) => ({ bytes: new Uint8Array(size).fill(fill), text: "y".repeat(size) });
    const same = (value: unknown, size: number, fill: number) => {
      const got = value as ReturnType<typeof bytes>;
      assert.equal(got.text.length, size);
      assert.ok(Buffer.from(got.bytes).equals(Buffer.alloc(size, fill)), `${size} bytes of ${fill}`);
    };
    for (const [i, size] of sizes.entries()) await a.commit(new Change().set(["k", i], bytes(size, 1)));
    for (const [i, size] of sizes.entries()) same((await b.get(["k", i])).value, size, 1);
    const listed = await rowsOf(b, { prefix: ["k"] }, { reverse: true });
    for (const [i, row] of listed.toReversed().entries()) same(row.value, sizes[i]!, 1);
    const many = await b.getMany(sizes.map((_, i) => ["k", i]));
    for (const [i, slot] of many.entries()) same(slot.value, sizes[i]!, 1);
    // Every size is overwritten by another, then deleted.
    for (const i of sizes.keys()) await b.commit(new Change().set(["k", i], bytes(sizes.at(-1 - i)!, 2)));
    for (const i of sizes.keys()) same((await a.get(["k", i])).value, sizes.at(-1 - i)!, 2);
    for (const i of sizes.keys()) await a.commit(new Change().delete(["k", i]));
    assert.deepEqual(await rowsOf(b, { prefix: ["k"] }), []);
  });

  test("large values are written with the rest of their commit or not at all", async ({ a, b }) => {
    await b.commit(new Change().set(["taken"], 1));
    for (const size of [100_000, 3_000_000]) {
      const change = new Change().set(["k"], "x".repeat(size)).set(["small"], size);
      change.checkAbsent(["taken"]);
      assert.equal(await a.commit(change), null);
      assert.deepEqual((await b.getMany([["k"], ["small"]])).map((slot) => slot.value), [null, null]);
    }
  });

  test("a reader never sees a mix of two large values", async ({ a, b }) => {
    const text = (i: number) => String(i % 10).repeat(100_000 + 50_000 * (i % 8));
    await a.commit(new Change().set(["k"], text(0)));
    let writing = true;
    const writer = (async () => {
      for (let i = 1; i <= 60; i++) await a.commit(new Change().set(["k"], text(i)));
      writing = false;
    })();
    let reads = 0;
    while (writing) {
      const { value } = await b.get<string>(["k"]);
      assert.ok(value !== null && value === text(Number(value[0]) + 10 * wraps(value)), "one value, whole");
      reads++;
    }
    await writer;
    assert.ok(reads > 0);
    /** Texts repeat their digit after 10 and their length after 8 writes; finds the write by both. */
    function wraps(value: string): number {
      for (let tens = 0; tens < 7; tens++) {
        if (text(Number(value[0]) + 10 * tens).length === value.length) return tens;
      }
      return 0;
    }
  });

  test("counters start at 0, add both ways, and read as bigint", async ({ a, b }) => {
    assert.equal((await a.get<bigint>(["n"])).value, null);
    await a.commit(new Change().add(["n"], -3));
    assert.equal((await b.get<bigint>(["n"])).value, -3n);
    await b.commit(new Change().add(["n"], 10).add(["n"], 2n ** 40n));
    assert.equal((await a.get<bigint>(["n"])).value, 2n ** 40n + 7n);
    await a.commit(new Change().set(["n"], -5n));
    await a.commit(new Change().add(["n"], 6));
    assert.equal((await b.get<bigint>(["n"])).value, 1n);
  });

  test("of 600 concurrent additions none is lost", async ({ a, b }) => {
    const adds = Array.from({ length: 600 }, (_, i) => (i % 2 ? a : b).commit(new Change().add(["n"], 1)));
    assert.ok((await Promise.all(adds)).every((ok) => ok));
    assert.equal((await a.get(["n"])).value, 600n);
  });

  test("of many conflicting commits from both instances none is lost", async ({ a, b }) => {
    // As often as it takes: with this many writers, one may lose for long.
    const increment = async (kv: Kv) => {
      for (let done: string | null = null; done === null;) {
        const slot = await kv.get<number>(["n"]);
        done = await kv.commit(new Change().check(slot).set(["n"], (slot.value ?? 0) + 1));
      }
    };
    const writer = async (kv: Kv) => {
      for (let i = 0; i < conflicts; i++) await increment(kv);
    };
    await Promise.all([writer(a), writer(a), writer(b), writer(b)]);
    assert.equal((await a.get(["n"])).value, 4 * conflicts);
  });

  test("a reader who follows the order of commits misses nothing, whoever writes", async ({ a, b, open }) => {
    const append = (writer: string, i: number) => (order: string): Mutation[] => [
      { kind: "set", key: ["log", order], value: `${writer}${i}` },
      { kind: "set", key: ["copy", order], value: order },
    ];
    const reader = await open(3);
    const followed: string[] = [];
    let cursor: Key = ["log", ""];
    const follow = async () => {
      for await (const row of reader.list<string>({ prefix: ["log"], start: cursor })) {
        if (row.key[1] === cursor[1]) continue;
        followed.push(row.value);
        cursor = row.key;
      }
    };
    let writing = true;
    const writers = Promise.all(
      [["a", a], ["b", b]].flatMap(([name, kv]) =>
        Array.from({ length: 100 }, async (_, i) => {
          assert.ok(await (kv as Kv).commit(new Change().ordered(SEQUENCE, append(name as string, i))));
        })
      ),
    ).then(() => writing = false);
    while (writing) await follow();
    await writers;
    await follow();
    assert.equal(followed.length, 200);
    assert.equal(new Set(followed).size, 200);
    assert.deepEqual(followed, (await rowsOf(a, { prefix: ["log"] })).map((row) => row.value));
  });

  test("the order of commits grows over reopening and when the clock steps back", async ({ a, openAt }) => {
    const orders: string[] = [];
    const append = async (kv: Kv) => {
      const change = new Change();
      for (let i = 0; i < 3; i++) {
        change.ordered(SEQUENCE, (order) => {
          orders.push(order);
          return [{ kind: "set", key: ["log", order], value: i }];
        });
      }
      assert.ok(await kv.commit(change));
    };
    await append(a);
    await append(await openAt(4, Date.UTC(2027, 0, 1)));
    await append(await openAt(5, Date.UTC(2026, 5, 1)));
    await append(await openAt(6, Date.UTC(2028, 0, 1)));
    assert.deepEqual(orders, orders.toSorted());
    assert.equal(new Set(orders).size, 12);
    assert.equal(new Set(orders.map((order) => order.length)).size, 1);
  });

  test("sequences grow by themselves, and no order is given twice, whoever writes", async ({ a, b }) => {
    const given = new Map<string, number>();
    const append = (kv: Kv, sequence: number) =>
      kv.commit(
        new Change().ordered(["sequence", sequence], (order) => [
          { kind: "set", key: ["log", sequence, order], value: order },
        ]),
      );
    for (let i = 0; i < 30; i++) {
      const versions = await Promise.all([1, 2, 3].flatMap((sequence) => [append(a, sequence), append(b, sequence)]));
      assert.ok(versions.every((version) => version !== null));
    }
    for (const sequence of [1, 2, 3]) {
      const rows = await rowsOf<string>(b, { prefix: ["log", sequence] });
      assert.equal(rows.length, 60);
      for (const { value } of rows) given.set(value, sequence);
    }
    assert.equal(given.size, 180);
  });

  test("after many that went together, another instance takes the place behind all of them", async ({ a, b }) => {
    const append = (kv: Kv, change = new Change()) =>
      kv.commit(change.ordered(SEQUENCE, (order) => [{ kind: "set", key: ["log", order], value: order }]));
    const together = Array.from(
      { length: 20 },
      (_, i) => append(a, new Change().checkAbsent(["taken", i % 10]).set(["taken", i % 10], i)),
    );
    const written = (await Promise.all(together)).filter((version) => version !== null).length;
    assert.equal(written, 10);
    const before = (await rowsOf<string>(b, { prefix: ["log"] })).at(-1)!.value;
    assert.ok(await append(b));
    const rows = await rowsOf<string>(a, { prefix: ["log"] });
    assert.equal(rows.length, 11);
    assert.ok(rows.at(-1)!.value > before);
  });

  test("one commit takes places in several sequences, or in none", async ({ a, b }) => {
    const change = () =>
      [1, 2, 3].reduce(
        (all, sequence) =>
          all.ordered(["sequence", sequence], (order) => [{ kind: "set", key: ["log", sequence, order], value: 1 }]),
        new Change().checkAbsent(["taken"]).set(["taken"], 1),
      );
    assert.ok(await a.commit(change()));
    assert.equal(await b.commit(change()), null);
    for (const sequence of [1, 2, 3]) assert.equal((await rowsOf(b, { prefix: ["log", sequence] })).length, 1);
  });

  test("an ordered commit whose check fails writes nothing", async ({ a, b }) => {
    await b.commit(new Change().set(["taken"], 1));
    const change = new Change().checkAbsent(["taken"]).ordered(SEQUENCE, (order) => [
      { kind: "set", key: ["log", order], value: 1 },
    ]);
    assert.equal(await a.commit(change), null);
    assert.deepEqual(await rowsOf(b, { prefix: ["log"] }), []);
  });

  test("large values take their place in the order of commits too", async ({ a, b }) => {
    const text = "z".repeat(150_000);
    await Promise.all(Array.from({ length: 12 }, (_, i) => {
      const build = (order: string): Mutation[] => [{ kind: "set", key: ["log", order], value: `${i}${text}` }];
      return a.commit(new Change().set(["beside", i], `${i}${text}`).ordered(SEQUENCE, build));
    }));
    const rows = await rowsOf<string>(b, { prefix: ["log"] });
    assert.equal(new Set(rows.map((row) => row.value)).size, 12);
    for (const [i, row] of (await rowsOf<string>(b, { prefix: ["beside"] })).entries()) {
      assert.equal(row.value, `${i}${text}`);
    }
  });
}
