import assert from "node:assert/strict";
import { denoKvEngine } from "../../../src/store/deno_kv/deno_kv.ts";
import type { FileRecord } from "../../../src/media/store.ts";
import { dataKeys } from "../../../src/data/rows.ts";
import { mediaKeys } from "../../../src/media/rows.ts";
import { Change, type Kv } from "../../../src/store/kv.ts";
import { migrate, type Migration, SchemaTooNew } from "../../../src/data/migrate.ts";
import { testRuntime } from "../../support/runtime.ts";

async function withKv(run: (kv: Kv) => Promise<void>): Promise<void> {
  const native = await Deno.openKv(":memory:");
  const kv = denoKvEngine({ writes: native, reads: native }, { runtime: testRuntime() });
  try {
    await run(kv);
  } finally {
    kv.close();
  }
}

const steps = (ran: number[], fails: () => boolean = () => false): Migration[] =>
  [2, 3].map((to) => ({
    to,
    about: `step to ${to}`,
    run(kv) {
      ran.push(to);
      if (fails()) return Promise.reject(new Error("cut short"));
      return kv.commit(new Change().set(["converted", to], true)).then(() => {});
    },
  }));

const versionOf = async (kv: Kv) => (await kv.get(dataKeys.schemaVersion())).value;

Deno.test("a new folder begins at the newest version, without conversions", () =>
  withKv(async (kv) => {
    const ran: number[] = [];
    assert.equal(await migrate(kv, { runtime: testRuntime(), migrations: steps(ran) }), 3);
    assert.equal(await versionOf(kv), 3);
    assert.deepEqual(ran, []);
    assert.equal(await migrate(kv, { runtime: testRuntime(), migrations: steps(ran) }), 3);
  }));

Deno.test("older data goes through every step in order, once", () =>
  withKv(async (kv) => {
    await kv.commit(new Change().set(dataKeys.schemaVersion(), 1));
    const ran: number[] = [];
    for (let i = 0; i < 2; i++) await migrate(kv, { runtime: testRuntime(), migrations: steps(ran) });
    assert.deepEqual(ran, [2, 3]);
    assert.equal(await versionOf(kv), 3);
  }));

Deno.test("a step that was cut short runs again", () =>
  withKv(async (kv) => {
    await kv.commit(new Change().set(dataKeys.schemaVersion(), 1));
    const ran: number[] = [];
    const failing = steps(ran, () => ran.length === 2);
    await assert.rejects(migrate(kv, { runtime: testRuntime(), migrations: failing }), /cut short/);
    assert.equal(await versionOf(kv), 2);
    assert.equal(await migrate(kv, { runtime: testRuntime(), migrations: failing }), 3);
    assert.deepEqual(ran, [2, 3, 3]);
  }));

Deno.test("newer data is refused with a word on what to do, and nothing is written", () =>
  withKv(async (kv) => {
    await kv.commit(new Change().set(dataKeys.schemaVersion(), 4));
    const tried = migrate(kv, { runtime: testRuntime(), migrations: steps([]) });
    await assert.rejects(tried, SchemaTooNew);
    await assert.rejects(tried, /version 4.*up to 3.*newer version/s);
    assert.equal(await versionOf(kv), 4);
  }));

Deno.test("received files of version 1 are found by when they end, also when the conversion is cut short", () =>
  withKv(async (kv) => {
    const file = (i: number): FileRecord => ({
      id: `med_${String(i).padStart(4, "0")}`,
      accountId: "acc_1",
      size: i,
      sha256: "00",
      mimetype: "image/png",
      filename: "a.png",
      createdAt: i,
      expiresAt: i % 3 === 0 ? null : i + 100,
    });
    const files = Array.from({ length: 1_200 }, (_, i) => file(i));
    for (let at = 0; at < files.length; at += 400) {
      const change = new Change();
      for (const each of files.slice(at, at + 400)) change.set(mediaKeys.file(each.id), each);
      await kv.commit(change);
    }
    await kv.commit(new Change().set(dataKeys.schemaVersion(), 1).set(mediaKeys.fileEnd(101, "med_0001"), 1));
    assert.equal(await migrate(kv, { runtime: testRuntime() }), 2);
    const found: [unknown, unknown, number][] = [];
    for await (const { key, value } of kv.list({ prefix: mediaKeys.fileEnds() })) found.push([key[1], key[2], value]);
    const received = files.filter(({ expiresAt }) => expiresAt !== null);
    assert.deepEqual(found, received.map(({ id, size, expiresAt }) => [expiresAt, id, size]));
  }));
