import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { clusterKeys } from "../../../src/cluster/rows.ts";
import { migrate, type Migration } from "../../../src/data/migrate.ts";
import { dataKeys } from "../../../src/data/rows.ts";
import { rekey, rekeyDataFolder } from "../../../src/data/rekey.ts";
import { fitsSecret, prove } from "../../../src/data/secret_key.ts";
import { Change, key, prefix } from "../../../src/store/kv.ts";
import { withSealedContents } from "../../../src/store/layers/sealed_contents.ts";
import { makeSeal, type Seal, sealKey } from "../../../src/store/seal.ts";
import { type ChunkedKv, withChunks } from "../../../src/store/layers/chunk.ts";
import { MemoryDisk, MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";

const runtime = testRuntime();
const from = "the secret of the operator";
const to = "the secret that comes after";
const old = makeSeal(sealKey(from), runtime.random);
const next = makeSeal(sealKey(to), runtime.random);
const options = { runtime, migrations: [], from, to };

const plain = (n: number) => Buffer.from(`credential ${n}`);
const row = (n: number) => key<unknown>("rekey", n);
const SEALED = 450;

/** The disk as a process opens it that dies after so many commits. */
function open(disk: MemoryDisk, commitsLeft = Infinity): ChunkedKv {
  const kv = new MemoryKv(disk);
  kv.commitsLeft = commitsLeft;
  return withChunks(kv, { runtime });
}

/** A store under the old key, with values sealed at every depth, and some that were never sealed. */
async function sealedDisk(): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  const kv = open(disk);
  const change = prove(new Change(), old).set(dataKeys.schemaVersion(), 1);
  for (let n = 0; n < SEALED; n++) change.set(row(n), old.seal(plain(n)));
  change.set(row(1_000), { name: "acme", totp: { secret: old.seal(plain(1_000)) }, keys: [old.seal(plain(1_001))] });
  change.set(row(2_000), Uint8Array.from({ length: 64 }, (_, i) => i + 1));
  change.set(row(2_001), { text: "in the open", at: 7 });
  await kv.commit(change);
  return disk;
}

async function assertUnderNext(kv: ChunkedKv): Promise<void> {
  for (let n = 0; n < SEALED; n++) {
    assert.deepEqual(Buffer.from(next.open((await kv.get(row(n))).value as Uint8Array)), plain(n));
  }
  const { totp, keys } = (await kv.get(row(1_000))).value as { totp: { secret: Uint8Array }; keys: Uint8Array[] };
  assert.deepEqual(Buffer.from(next.open(totp.secret)), plain(1_000));
  assert.deepEqual(Buffer.from(next.open(keys[0]!)), plain(1_001));
  assert.deepEqual((await kv.get(row(2_000))).value, Uint8Array.from({ length: 64 }, (_, i) => i + 1));
  assert.deepEqual((await kv.get(row(2_001))).value, { text: "in the open", at: 7 });
  assert.ok(await fitsSecret(kv, next));
  assert.ok(!await fitsSecret(kv, old));
}

Deno.test("what is sealed opens under the new key alone, and what never was stays as it is", async () => {
  const kv = open(await sealedDisk());
  assert.equal(await rekey(kv, options), SEALED + 1);
  await assertUnderNext(kv);
  assert.equal((await kv.get(dataKeys.rekeying())).value, null);
});

Deno.test("a key that is not the data's changes nothing", async () => {
  const disk = await sealedDisk();
  const before = disk.commits;
  assert.equal(await rekey(open(disk), { ...options, from: "the secret of another gateway" }), null);
  assert.equal(disk.commits, before);
});

Deno.test("cut short after any commit it says so, and goes on when it is run again", async () => {
  const whole = await sealedDisk();
  const before = whole.commits;
  await rekey(open(whole), options);
  const commits = whole.commits - before;
  assert.ok(commits > 4);
  for (let kept = 1; kept < commits; kept++) {
    const disk = await sealedDisk();
    await assert.rejects(rekey(open(disk, kept), options));
    const kv = open(disk);
    assert.notEqual((await kv.get(dataKeys.rekeying())).value, null);
    assert.notEqual(await rekey(kv, options), null);
    await assertUnderNext(kv);
  }
});

Deno.test("cut short it goes on with the same new key alone: what is under that key already would be lost", async () => {
  const disk = await sealedDisk();
  await assert.rejects(rekey(open(disk, 2), options));
  const kv = open(disk);
  await assert.rejects(rekey(kv, { ...options, to: "a third secret" }), { code: "secret_key_wrong" });
  assert.notEqual(await rekey(kv, options), null);
  await assertUnderNext(kv);
});

Deno.test("older data is converted by whoever opens it next, who can read what an account has sealed", async () => {
  const disk = await sealedDisk();
  const seen: unknown[] = [];
  const migration: Migration = {
    to: 2,
    about: "a test",
    async run(kv) {
      for await (const { value } of kv.list({ prefix: prefix<unknown>("event") })) seen.push(value);
    },
  };
  const contents = new Set(["event"]);
  const plain = { accountId: "acc_1", event: "message.received" };
  const sealing = (seal: Seal) => withSealedContents(open(disk), { seal, families: contents, isChosen: () => true });
  await sealing(old).commit(new Change().set(key("event", "acc_1", "1"), plain));
  await rekey(open(disk), { ...options, migrations: [migration] });
  await migrate(sealing(next), { runtime, migrations: [migration] });
  assert.deepEqual(seen, [plain]);
});

Deno.test("run once more it has nothing to do", async () => {
  const kv = open(await sealedDisk());
  await rekey(kv, options);
  assert.equal(await rekey(kv, options), 0);
  await assertUnderNext(kv);
});

Deno.test("a store on which somebody works is left alone, and one whose workers are gone is not", async () => {
  const disk = await sealedDisk();
  const kv = open(disk);
  const row = { held: { line: 1 }, leaving: false, silent: {} };
  const beat = (beat: number) => kv.commit(new Change().set(clusterKeys.member("m"), { ...row, beat }));
  const place = { dataDir: "/nowhere", store: "postgres://paloma:password@db/paloma", secretKey: from };
  const openStore = () => Promise.resolve(open(disk));
  const attempt = () => runtime.clock.during(rekeyDataFolder(place, { runtime, migrations: [], to, openStore }));
  await beat(1);
  runtime.clock.after(1_000, () => void beat(2));
  await assert.rejects(attempt(), {
    code: "already_running",
    message: "a gateway already runs on postgres://db/paloma: stop every worker, api and serve on it first",
  });
  assert.ok(await fitsSecret(kv, old));
  assert.equal(await attempt(), SEALED + 1);
  await assertUnderNext(kv);
});
