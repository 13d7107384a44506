/** The bell's contract on PostgreSQL. */
import assert from "node:assert/strict";
// @ts-types="@types/pg"
import pg from "pg";
import { systemClock } from "../../src/runtime.ts";
import type { Bell } from "../../src/store/bell.ts";
import { openDenoKvBell } from "../../src/store/deno_kv/bell.ts";
import { shareBell } from "../../src/store/layers/shared_bell.ts";
import { postgresWire } from "../../src/store/postgres/wire.ts";
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from "../support/postgres.ts";
import { testRuntime } from "../support/runtime.ts";
import { bellContract, sharedBellContract } from "./bell_contract.ts";

if (WITHOUT_POSTGRES) {
  Deno.test({ name: "PostgreSQL's bell: skipped, it is not installed", ignore: true, fn() {} });
} else {
  let server: PostgresServer;
  Deno.test.beforeAll(async () => {
    server = await startPostgres();
  });
  Deno.test.afterAll(() => server.remove());

  const runtimeOf = (seed: number) => ({ ...testRuntime(seed), clock: systemClock });
  const openBell = async (url: string, seed: number): Promise<Bell> => {
    const runtime = runtimeOf(seed);
    return await shareBell(await openDenoKvBell({ runtime }), postgresWire(url, { runtime }), { runtime });
  };

  bellContract({
    name: "PostgreSQL",
    async open() {
      const bell = await openBell(await server.database(), 1);
      return { bell, runtime: runtimeOf(1), pass: () => Promise.resolve() };
    },
  });

  Deno.test("PostgreSQL: a notification that Paloma did not send is ignored", async () => {
    const url = await server.database();
    const bells = await Promise.all([openBell(url, 1), openBell(url, 2)]);
    const [a, b] = bells;
    const rung: string[] = [];
    const heard = Promise.withResolvers<void>();
    b.hear("", (topic) => {
      rung.push(topic);
      if (topic === "line/1") heard.resolve();
    });
    const client = new pg.Client(url);
    await client.connect();
    for (const payload of ["", "hello", "null", "{}", "7", '["x", 7, null]']) {
      await client.query("select pg_notify('paloma_bell', $1)", [payload]);
    }
    await client.end();
    a.ring("line/1");
    await heard.promise;
    assert.deepEqual(rung, ["line/1"]);
    await Promise.all(bells.map((bell) => bell.close()));
  });

  sharedBellContract("PostgreSQL", async () => {
    const url = await server.database();
    const [a, b] = await Promise.all([openBell(url, 1), openBell(url, 2)]);
    const cut = () => server.restart();
    return { a, b, runtime: runtimeOf(3), cut };
  });
}
