/** What an operator's PostgreSQL goes through: a standby takes over, a machine vanishes, no connection is left. */
import assert from "node:assert/strict";
import { systemClock } from "../../src/runtime.ts";
import { Change, type Kv, StoreError } from "../../src/store/kv.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import type { OpenWire } from "../../src/store/layers/shared_bell.ts";
import { postgresWire } from "../../src/store/postgres/wire.ts";
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from "../support/postgres.ts";
import { startRelay } from "../support/relay.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { until } from "../support/until.ts";

const open = (url: string, seed = 1) => openPostgres(url, { runtime: testRuntime(seed) });
const through = (url: string, port: number) => Object.assign(new URL(url), { port: String(port) }).href;
/** What a silence costs a test, and no answer of a server that is there takes. */
const TIMED_OUT_MS = 4_000;
const isUnavailable = (error: unknown) => error instanceof StoreError && error.code === "unavailable";

/** As many reads at a time as there may be connections. */
const readAll = (kv: Kv) =>
  Promise.all(Array.from({ length: 20 }, (_, i) => Array.fromAsync(kv.list({ prefix: ["row", i] }))));

/** Commits one after another, each at a place in the sequence; resolves to what each was given. */
async function take(kv: Kv, sequence: string, count: number): Promise<{ version: string; order: string }[]> {
  const given = [];
  for (let i = 0; i < count; i++) {
    let order = "";
    const change = new Change().set(["row", sequence], i).ordered(["sequence", sequence], (at) => {
      order = at;
      return [{ kind: "set", key: ["event", sequence, at], value: i }];
    });
    const version = await kv.commit(change);
    assert.ok(version);
    given.push({ version, order });
  }
  return given;
}

if (WITHOUT_POSTGRES) {
  Deno.test({ name: "PostgreSQL: skipped, it is not installed (apt-get install postgresql)", ignore: true, fn() {} });
} else {
  let server: PostgresServer;
  Deno.test.beforeAll(async () => {
    server = await startPostgres({ fsync: "off", max_connections: "10" });
  });
  Deno.test.afterAll(() => server.remove());
  const test = (sentence: string, run: (server: PostgresServer) => Promise<void>) =>
    Deno.test(`PostgreSQL: ${sentence}`, () => run(server));

  test("a standby is passed over, and once it is promoted all goes on, at the old address or at the other of two", async (primary) => {
    const url = await primary.database();
    await using relay = await startRelay(primary.port);
    const kv = await open(through(url, relay.port));
    await kv.commit(new Change().set(["row", 1], "before"));
    const standby = await primary.standby();
    const both = url.replace("/paloma_", `,127.0.0.1:${standby.port}$&`);
    const standbyFirst = url.replace("127.0.0.1", `127.0.0.1:${standby.port},$&`);
    const rung = new Set<string>();
    const missed = Promise.withResolvers<void>();
    const wires: Awaited<ReturnType<OpenWire>>[] = [];
    try {
      await until(
        () => standby.sql("select 1 from paloma.row", new URL(url).pathname.slice(1)).catch(() => null),
        "the row at the standby",
      );
      await assert.rejects(
        open(through(url, standby.port), 2),
        (error) => isUnavailable(error) && /standby/.test(`${error}`),
      );
      const [named, reversed] = await Promise.all([open(both, 3), open(`${standbyFirst}?target_session_attrs=any`, 4)]);
      assert.ok(await reversed.commit(new Change().set(["row", 2], "through the second of two hosts")));
      const runtime = (seed: number) => ({ ...testRuntime(seed), clock: systemClock });
      wires.push(await postgresWire(both, { runtime: runtime(5) })({ ring() {}, missed: missed.resolve }));
      wires.push(
        await postgresWire(standbyFirst, { runtime: runtime(6) })({ ring: (topic) => rung.add(topic), missed() {} }),
      );

      relay.to = standby.port;
      await primary.halt();
      await assert.rejects(kv.commit(new Change().set(["row", 1], "refused")), isUnavailable);
      await assert.rejects(kv.get(["row", 1]), isUnavailable, "what a standby says is old");
      await assert.rejects(
        named.get(["row", 1]),
        (error) =>
          isUnavailable(error) && /no server takes writes \(.*:\d+: .+; .*:\d+: it is a standby/.test(`${error}`),
      );
      await standby.sql("select pg_promote()");
      for (const each of [kv, named, reversed]) assert.equal((await each.get(["row", 1])).value, "before");
      for (const each of [kv, named, reversed]) assert.ok(await each.commit(new Change().add(["after"], 1)));
      await missed.promise;
      await until(async () => {
        await wires[0]!.send(["line/1"]).catch(() => {});
        return rung.has("line/1");
      }, "a ring between bells that have both found the new primary");

      // The old one is back, fenced off by its operator.
      await primary.start();
      await primary.sql("alter system set default_transaction_read_only = on");
      await primary.sql("select pg_reload_conf()");
      const late = await open(both, 7);
      assert.equal((await late.get(["after"])).value, 3n);
      for (const each of [kv, named, reversed, late]) each.close();
    } finally {
      await Promise.all(wires.map((wire) => wire.close()));
      await standby.remove();
      await primary.start();
      await primary.sql("alter system reset default_transaction_read_only");
      await primary.sql("select pg_reload_conf()");
    }
  });

  test("when a standby takes over that lagged, nothing that was given before is given again", async (primary) => {
    const url = await primary.database();
    await using relay = await startRelay(primary.port);
    const survivor = await open(through(url, relay.port));
    await take(survivor, "shared", 1);
    const standby = await primary.standby();
    try {
      await standby.sql("alter system set primary_conninfo = ''");
      await standby.sql("select pg_reload_conf()");
      await until(
        async () => await standby.sql("select count(*) from pg_stat_wal_receiver") === "0",
        "a standby that follows nobody",
      );
      const dead = await open(url, 2);
      const lost = [...await take(survivor, "shared", 50), ...await take(dead, "dead", 50)];
      const remembered = await survivor.get(["row", "shared"]);
      dead.close();

      relay.to = standby.port;
      await primary.halt();
      await standby.sql("select pg_promote()");
      await survivor.get(["row", "shared"]).catch(() => {});
      assert.equal(await survivor.commit(new Change().check(remembered).set(["row", "shared"], "by a check")), null);
      const clock = new ManualClock(testRuntime().clock.now() + 5_000);
      const late = await openPostgres(through(url, standby.port), { runtime: testRuntime(3, clock) });
      const found = [...await take(survivor, "shared", 50), ...await take(late, "late", 50)];
      const given = new Set(lost.flatMap(({ version, order }) => [version, order]));
      for (const { version, order } of found) {
        assert.ok(!given.has(version) && !given.has(order), `${version} ${order}`);
      }
      assert.notEqual(found.at(-1)!.order.slice(-4), lost.at(-1)!.order.slice(-4), "the number of another instance");
      for (const each of [survivor, late]) each.close();
    } finally {
      await standby.remove();
      await primary.start();
    }
  });

  test("when its machine vanishes without a word, one time-out finds out all connections", async (server) => {
    await using relay = await startRelay(server.port);
    const kv = await open(`${through(await server.database(), relay.port)}?query_timeout=${TIMED_OUT_MS}`);
    await readAll(kv);
    const connections = "select count(*) from pg_stat_activity where application_name = 'paloma'";
    assert.ok(Number(await server.sql(connections)) > 2);
    relay.silence();
    await assert.rejects(kv.commit(new Change().set(["k"], 1)), isUnavailable);
    assert.ok(await kv.commit(new Change().set(["k"], 2)));
    assert.equal((await kv.get(["k"])).value, 2);
    kv.close();
  });

  test("a ring that gets no answer gives the bell's connection up: the next one is on another", async (server) => {
    const url = await server.database();
    await using relay = await startRelay(server.port);
    const heard = Promise.withResolvers<string>();
    const again = Promise.withResolvers<void>();
    // Their clocks stand still: nobody finds out by asking now and then.
    const far = await postgresWire(url, { runtime: testRuntime(1) })({ ring: heard.resolve, missed() {} });
    const wire = await postgresWire(`${through(url, relay.port)}?query_timeout=${TIMED_OUT_MS}`, {
      runtime: testRuntime(2),
    })({
      ring() {},
      missed: again.resolve,
    });
    relay.silence();
    await assert.rejects(wire.send(["lost"]), isUnavailable);
    await again.promise;
    await wire.send(["line/1"]);
    assert.equal(await heard.promise, "line/1");
    await Promise.all([wire.close(), far.close()]);
  });

  test("a long read whose connection is cut between two rounds fails, and the process lives on", async (server) => {
    const kv = await open(await server.database());
    await Promise.all(Array.from({ length: 250 }, (_, i) => kv.commit(new Change().set(["row", i], i))));
    const reading = async () => {
      let isCut = false;
      for await (const _ of kv.rows()) {
        if (isCut) continue;
        isCut = true;
        await server.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'paloma'");
      }
    };
    await assert.rejects(reading(), isUnavailable);
    assert.equal((await kv.get(["row", 1])).value, 1);
    kv.close();
  });

  test("a server that takes no more connections serves all that have one", async (server) => {
    const url = await server.database();
    const kvs = await Promise.all([1, 2, 3].map((seed) => open(url, seed)));
    for (let round = 0; round < 5; round++) await Promise.all(kvs.map(readAll));
    for (const kv of kvs) {
      assert.ok(await kv.commit(new Change().add(["n"], 1)));
      kv.close();
    }
  });
}
