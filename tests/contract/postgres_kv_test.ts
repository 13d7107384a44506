/** The store's contract on PostgreSQL, and what it does when the server goes away. */
import assert from "node:assert/strict";
// @ts-types="@types/pg"
import pg from "pg";
import { Change, type Kv, StoreError } from "../../src/store/kv.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from "../support/postgres.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { kvContract } from "./kv_contract.ts";

if (WITHOUT_POSTGRES) {
  Deno.test({ name: "PostgreSQL: skipped, it is not installed (apt-get install postgresql)", ignore: true, fn() {} });
} else {
  let server: PostgresServer;
  Deno.test.beforeAll(async () => {
    server = await startPostgres();
  });
  Deno.test.afterAll(() => server.remove());

  const databases = new Map<string, Promise<string>>();
  kvContract({
    name: "PostgreSQL",
    async open(path, runtime) {
      const database = databases.get(path) ?? server.database();
      databases.set(path, database);
      return await openPostgres(await database, { runtime });
    },
  });

  /** Two instances on a database of their own. */
  const test = (sentence: string, run: (bench: { a: Kv; b: Kv; url: string; clock: ManualClock }) => Promise<void>) =>
    Deno.test(`PostgreSQL: ${sentence}`, async () => {
      const url = await server.database();
      const clock = new ManualClock();
      const [a, b] = await Promise.all([1, 2].map((seed) => openPostgres(url, { runtime: testRuntime(seed, clock) })));
      try {
        await run({ a: a!, b: b!, url, clock });
      } finally {
        a!.close();
        b!.close();
      }
    });
  const isUnavailable = (error: unknown) => error instanceof StoreError && error.code === "unavailable";

  test("while the server is away reads and commits are refused at once, and it needs nobody to go on", async ({ a, b }) => {
    assert.ok(await a.commit(new Change().set(["k"], "before")));
    await server.halt();
    await assert.rejects(a.get(["k"]), isUnavailable);
    await assert.rejects(a.commit(new Change().set(["k"], "meanwhile")), isUnavailable);
    await assert.rejects(Array.fromAsync(b.list({ prefix: ["k"] })), isUnavailable);
    await server.start();
    assert.equal((await b.get(["k"])).value, "before");
    assert.ok(await a.commit(new Change().set(["k"], "after")));
    assert.equal((await b.get(["k"])).value, "after");
  });

  test("a commit whose connection is cut says that it does not know, and is whole or not there", async ({ a, b }) => {
    await a.commit(new Change().set(["k"], 0));
    let unknown = 0;
    for (let i = 0; i < 20; i++) {
      const writes = Array.from(
        { length: 10 },
        (_, n) =>
          a.commit(new Change().set(["left", i, n], 1).set(["right", i, n], 1)).catch((error) => {
            assert.ok(isUnavailable(error), String(error));
            unknown++;
            return "unknown";
          }),
      );
      await server.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'paloma'");
      const written = await Promise.all(writes);
      for (let n = 0; n < written.length; n++) {
        const [left, right] = await b.getMany([["left", i, n], ["right", i, n]]).catch(() =>
          b.getMany([["left", i, n], ["right", i, n]])
        );
        assert.equal(left!.version, right!.version);
        if (written[n] !== "unknown") assert.equal(left!.version, written[n]);
      }
    }
    assert.ok(await a.commit(new Change().set(["k"], unknown)));
  });

  test("a commit that waits for rows locked by somebody else ends in time, on the server too", async ({ a, url }) => {
    await a.commit(new Change().set(["k"], "before"));
    const somebody = new pg.Client(url);
    await somebody.connect();
    await somebody.query("begin");
    await somebody.query("select from paloma.row for update");
    await assert.rejects(a.commit(new Change().set(["k"], "meanwhile")), { code: "locked" });
    const { rows: waiting } = await somebody.query(
      "select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    assert.deepEqual(waiting, []);
    await somebody.end();
    assert.ok(await a.commit(new Change().set(["k"], "after")));
  });

  test("what waits behind others that wait for a lock fails after the same time, and is not written", async (bench) => {
    const { a, b, url, clock } = bench;
    const somebody = new pg.Client(url);
    await somebody.connect();
    await somebody.query("begin");
    await somebody.query("lock table paloma.row in access exclusive mode");
    const failing: Promise<void>[] = [];
    // Each alone in a flight, and the last ones behind all flights.
    for (let i = 0; i < 6; i++) {
      failing.push(assert.rejects(a.commit(new Change().set(["k", i], i)), isUnavailable));
      failing.push(assert.rejects(a.get(["k", i]), isUnavailable));
      await clock.advance(100);
    }
    await clock.advance(10_000);
    await Promise.all(failing);
    await somebody.end();
    assert.ok(await a.commit(new Change().set(["k", "after"], 1)));
    assert.deepEqual((await b.getMany([["k", 4], ["k", 5]])).map(({ value }) => value), [null, null]);
  });

  test("many who open it at once make its schema once", async () => {
    const url = await server.database();
    const opened = await Promise.all(Array.from({ length: 6 }, () => openPostgres(url, { runtime: testRuntime() })));
    await Promise.all(opened.map((kv) => kv.commit(new Change().add(["n"], 1))));
    assert.equal((await opened[0]!.get(["n"])).value, 6n);
    for (const kv of opened) kv.close();
  });

  test("a database of a newer Paloma is left alone, and what is no server is an error with a reason", async ({ url }) => {
    const name = new URL(url).pathname.slice(1);
    await server.sql("update paloma.schema set version = 99", name);
    await assert.rejects(openPostgres(url, { runtime: testRuntime() }), /a newer Paloma/);
    await assert.rejects(openPostgres(`${url}-none`, { runtime: testRuntime() }), /does not exist/);
    await assert.rejects(openPostgres("postgres://127.0.0.1:1/x", { runtime: testRuntime() }), isUnavailable);
  });
}
