import assert from "node:assert/strict";
import { join } from "node:path";
import { rekeyDataFolder } from "../../../src/data/rekey.ts";
import { backupData, restoreData } from "../../../src/data/shared_backup.ts";
import { copyOptions, openData, openOptions } from "../../../src/engines.ts";
import { type Config, readConfig } from "../../../src/config.ts";
import { AlreadyRunning, lockGateway, makeProbe, pathsOf } from "../../../src/data/data_folder.ts";
import { OperatorError } from "../../../src/errors.ts";
import { systemRuntime } from "../../../src/runtime.ts";
import { openNative } from "../../../src/store/deno_kv/deno_kv.ts";
import { denoKvFiles } from "../../../src/store/deno_kv/file_engine.ts";
import { type Kv, StoreError } from "../../../src/store/kv.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const runtime = systemRuntime(testRuntime().log);
const RIGHT = "the secret of the operator";
const WRONG = "the secret of another gateway";

async function withFolder(run: (dataDir: string) => Promise<void>): Promise<void> {
  await using temp = await tempFolder();
  await run(join(temp.path, "data"));
}

/** Opens the folder, makes an account of that name where one is given, and closes it. */
async function visit(dataDir: string, secretKey: string | null, account?: string): Promise<void> {
  const data = await openData({ dataDir, secretKey }, runtime);
  try {
    if (account !== undefined) await data.accounts.create({ name: account, plan: "free" });
  } finally {
    data.close();
  }
}

/** Every row with its version: two that are equal saw no commit in between. */
async function rowsOf(dataDir: string): Promise<[Deno.KvKey, string][]> {
  const native = await openNative(pathsOf(dataDir).store, { runtime });
  try {
    return await Array.fromAsync(
      native.list({ prefix: [] }),
      ({ key, versionstamp }): [Deno.KvKey, string] => [key, versionstamp],
    );
  } finally {
    native.close();
  }
}

async function assertRefused(dataDir: string, secretKey: string | null, says: RegExp): Promise<void> {
  const before = await rowsOf(dataDir);
  await assert.rejects(openData({ dataDir, secretKey }, runtime), (error) => {
    assert.ok(error instanceof OperatorError && error.code === "secret_key_wrong", String(error));
    assert.match(error.message, says);
    assert.match(error.message, /nothing was changed/);
    assert.ok(error.message.includes(dataDir));
    assert.ok(!error.message.includes(RIGHT) && !error.message.includes(WRONG), "a secret is shown");
    return true;
  });
  assert.deepEqual(await rowsOf(dataDir), before);
}

Deno.test("a folder opens again and again with the secret that it was made with", () =>
  withFolder(async (dataDir) => {
    for (const account of [undefined, "acme", undefined]) await visit(dataDir, RIGHT, account);
  }));

Deno.test("a new folder is begun in one commit", () =>
  withFolder(async (dataDir) => {
    await visit(dataDir, RIGHT);
    const rows = await rowsOf(dataDir);
    assert.ok(rows.length > 2);
    assert.equal(new Set(rows.map(([, version]) => version)).size, 1);
  }));

const rekeyed = (config: Config, to: string | null) => rekeyDataFolder(config, { ...openOptions(config, runtime), to });

Deno.test("a folder that nobody has opened yet takes a new key at once", () =>
  withFolder(async (dataDir) => {
    assert.equal(await rekeyed(readConfig({ PALOMA_DATA_DIR: dataDir }), WRONG), 0);
    await assertRefused(dataDir, RIGHT, /^PALOMA_SECRET_KEY/);
    await visit(dataDir, WRONG);
  }));

Deno.test("another secret is refused before anything is written, with or without accounts, and the setting is named", () =>
  withFolder(async (dataDir) => {
    await visit(dataDir, RIGHT);
    await assertRefused(dataDir, WRONG, /^PALOMA_SECRET_KEY .*is not the key/);
    await visit(dataDir, RIGHT, "acme");
    await assertRefused(dataDir, WRONG, /^PALOMA_SECRET_KEY .*is not the key/);
    await visit(dataDir, RIGHT);
  }));

Deno.test("another secret.key is refused by the file's name, and the right one opens the folder afterwards", () =>
  withFolder(async (dataDir) => {
    await visit(dataDir, null, "acme");
    const file = join(dataDir, "secret.key");
    const right = await Deno.readTextFile(file);
    await Deno.writeTextFile(file, "ab".repeat(32) + "\n");
    await assertRefused(dataDir, null, /^\S+secret\.key is not the key/);
    await Deno.writeTextFile(file, right);
    await visit(dataDir, null);
  }));

Deno.test("a change of the key that was cut short before its last step asks to be run again, not for the old key", () =>
  withFolder(async (dataDir) => {
    await visit(dataDir, null, "acme");
    const [file, nextFile] = [join(dataDir, "secret.key"), join(dataDir, "secret.key.next")];
    const config = readConfig({ PALOMA_DATA_DIR: dataDir });
    const before = await Deno.readTextFile(file);
    await rekeyed(config, null);
    await Deno.rename(file, nextFile);
    await Deno.writeTextFile(file, before);
    await assert.rejects(openData(config, runtime), {
      code: "secret_key_wrong",
      message: /`paloma rekey` again/,
    });
    assert.equal(await rekeyed(config, null), 0);
    await visit(dataDir, null);
  }));

Deno.test("a setting that stands over the right secret.key is told that the file is there", () =>
  withFolder(async (dataDir) => {
    await visit(dataDir, null);
    await assertRefused(dataDir, WRONG, /leave it out/);
  }));

Deno.test("a backup that is restored opens with its own secret only", () =>
  withFolder(async (dataDir) => {
    const elsewhere = `${dataDir}-elsewhere`;
    await visit(dataDir, RIGHT, "acme");
    const config = readConfig({ PALOMA_DATA_DIR: dataDir });
    await backupData(config, `${dataDir}.backup`, await copyOptions(config, runtime));
    await restoreData(`${dataDir}.backup`, { ...config, dataDir: elsewhere }, await copyOptions(config, runtime));
    await assertRefused(elsewhere, WRONG, /^PALOMA_SECRET_KEY/);
    await visit(elsewhere, RIGHT);
  }));

Deno.test("of two first starts with different secrets one has the folder, and the other is refused", () =>
  withFolder(async (dataDir) => {
    const starts = await Promise.allSettled([visit(dataDir, RIGHT), visit(dataDir, WRONG)]);
    const refused = starts.filter((start) => start.status === "rejected");
    assert.equal(refused.length, 1);
    assert.equal(refused[0]!.reason.code, "secret_key_wrong");
    const [winner, loser] = starts[0]!.status === "fulfilled" ? [RIGHT, WRONG] : [WRONG, RIGHT];
    await visit(dataDir, winner);
    await assertRefused(dataDir, loser, /^PALOMA_SECRET_KEY/);
  }));

Deno.test("a path that can be no folder is refused with what it must be, by the lock and by what opens it", () =>
  withFolder(async (dataDir) => {
    await Deno.writeTextFile(dataDir, "");
    const unusable = { code: "file_unusable", message: /^the data folder .* cannot be used \(.*PALOMA_DATA_DIR/ };
    await assert.rejects(visit(dataDir, null), unusable);
    await assert.rejects(lockGateway(dataDir, denoKvFiles), unusable);
  }));

Deno.test("a store that takes no writes is not ready, and is once it does", async () => {
  const clock = new ManualClock();
  let commits = 0;
  let full = true;
  const kv = {
    commit: () => {
      commits++;
      return full ? Promise.reject(new StoreError("full", "no space")) : Promise.resolve(true);
    },
  } as unknown as Kv;
  const probe = makeProbe(kv, clock);
  await assert.rejects(probe(), StoreError);
  full = false;
  await assert.rejects(probe(), StoreError);
  assert.equal(commits, 1, "it is not written for everybody who asks");
  await clock.advance(1_000);
  await probe();
});

const HOLDER = new URL("../../support/lock_holder.ts", import.meta.url).pathname;

Deno.test("a data folder takes one gateway at a time", async () => {
  await using temp = await tempFolder();
  const folder = temp.path;
  if (Deno.uid() === 0) await Deno.chown(folder, 4711, 4711);
  const first = await lockGateway(folder, denoKvFiles);
  assert.equal((await Deno.stat(`${folder}/gateway.lock`)).uid, (await Deno.stat(folder)).uid);
  await assert.rejects(lockGateway(folder, denoKvFiles), AlreadyRunning);
  first.release();
  first.release();
  (await lockGateway(folder, denoKvFiles)).release();
});

Deno.test("the folder of a killed gateway can be taken at once", async () => {
  await using temp = await tempFolder();
  const holder = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", HOLDER, temp.path],
    stdout: "piped",
  }).spawn();
  const reader = holder.stdout.getReader();
  await reader.read();
  await assert.rejects(lockGateway(temp.path, denoKvFiles), AlreadyRunning);
  holder.kill("SIGKILL");
  await holder.status;
  (await lockGateway(temp.path, denoKvFiles)).release();
  await reader.cancel();
});
