/** Backups on a schedule: named by the time, rotated, sealed under a passphrase. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { openData } from "../../src/engines.ts";
import { keepFile } from "../../src/media/store.ts";
import { Change } from "../../src/store/kv.ts";
import { palomaCommand, runCommand, spawnToEnd, tryCommand } from "../support/gateway_process.ts";
import { Receiver } from "../support/receiver.ts";
import { silentRuntime } from "../support/runtime.ts";
import { onSmallDisk } from "../support/small_disk.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { dataConfigOf } from "../support/test_store.ts";
import { until } from "../support/until.ts";

Deno.test("a sealed backup into a folder is rotated, and restores with its passphrase alone", async () => {
  await using temp = await tempFolder();
  const folder = temp.path;
  const into = join(folder, "backups");
  await Deno.mkdir(into);
  const others = [
    "paloma-2020-01-01T00-00-00Z.backup",
    "paloma-2020-02-01T00-00-00Z.backup.open",
    "paloma-2021-01-01T00-00-00Z.backup",
    "notes.txt",
  ];
  for (const name of others) await Deno.writeTextFile(join(into, name), "");
  const temporary = join(folder, "tmp");
  await Deno.mkdir(temporary);
  const env = {
    TMPDIR: temporary,
    PALOMA_DATA_DIR: join(folder, "data"),
    PALOMA_SECRET_KEY: "the secret of the operator",
    PALOMA_PASSPHRASE: "correct horse battery",
  };
  await runCommand(["account", "create", "--name", "acme", "--json"], env);
  const made = JSON.parse(await runCommand(["backup", "--into", into, "--keep", "2", "--json"], env));
  assert.deepEqual([made.sealed, made.removed], [true, others.slice(0, 2)]);
  const names = (await Array.fromAsync(Deno.readDir(into), ({ name }) => name)).sort();
  assert.equal(names.length, 3);
  assert.ok(!(await Deno.readTextFile(made.file)).includes("acme"), "the backup can be read");
  // Named by a clock that was ahead: none of them is newer than the one that was just made.
  const ahead = ["paloma-2098-01-01T00-00-00Z.backup", "paloma-2099-01-01T00-00-00Z.backup"];
  const late = join(folder, "late");
  await Deno.mkdir(late);
  for (const name of ahead) await Deno.writeTextFile(join(late, name), "");
  const last = JSON.parse(await runCommand(["backup", "--into", late, "--keep", "1", "--json"], env));
  assert.deepEqual(last.removed, ahead);
  assert.deepEqual(Array.from(Deno.readDirSync(late), ({ name }) => join(late, name)), [last.file]);

  const elsewhere = { ...env, PALOMA_DATA_DIR: join(folder, "elsewhere") };
  const wrong = await tryCommand(["restore", made.file], { ...elsewhere, PALOMA_PASSPHRASE: "another passphrase" });
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /the passphrase is another one/);
  const none = await tryCommand(["restore", made.file], { ...elsewhere, PALOMA_PASSPHRASE: "" });
  assert.equal(none.code, 2);
  await runCommand(["restore", made.file], elsewhere);
  const [account] = JSON.parse(await runCommand(["account", "list", "--json"], elsewhere));
  assert.equal(account.name, "acme");
  assert.deepEqual(await Array.fromAsync(Deno.readDir(temporary)), [], "something opened was left behind");
  assert.equal((await tryCommand(["backup"], env)).code, 2);
  assert.equal((await tryCommand(["backup", join(folder, "a.backup"), "--keep", "2"], env)).code, 2);
  const nowhere = { ...env, PALOMA_DATA_DIR: join(folder, "dtaa") };
  assert.match(
    (await tryCommand(["backup", "--into", into], nowhere)).stderr,
    /no data in .*: check PALOMA_(DATA_DIR|STORE)/,
  );
  const mistyped = await tryCommand(["backup", "--into", join(folder, "bakcups")], env);
  assert.deepEqual([mistyped.code, /no folder .*bakcups: make it first/.test(mistyped.stderr)], [1, true]);
});

Deno.test({
  name: "nothing that a passphrase keeps secret is left on disk by Ctrl-C",
  // An executable on an older Deno cannot read the row that this process writes.
  ignore: Deno.env.has("PALOMA_EXECUTABLE"),
  async fn() {
    await using temp = await tempFolder();
    const at = (name: string) => join(temp.path, name);
    const [tmp, backups, dataDir] = [at("tmp"), at("backups"), at("data")];
    for (const folder of [tmp, backups]) await Deno.mkdir(folder);
    const env = { TMPDIR: tmp, PALOMA_DATA_DIR: dataDir, PALOMA_PASSPHRASE: "correct horse battery" };
    await runCommand(["account", "create", "--name", "acme"], env);
    const change = new Change();
    const file = { size: 1, sha256: "", mimetype: "text/plain", filename: "a.txt", expiresAt: null };
    keepFile(change, { ...file, id: "med_1", accountId: "acc_1" });
    const data = await openData(dataConfigOf(dataDir), silentRuntime());
    await data.kv.commit(change);
    data.close();
    // Asks the bucket for the file, and gets no answer.
    const bucket = await Receiver.start(() => {});
    const media = `s3://files/?endpoint=http://127.0.0.1:${bucket.port}&region=here`;
    const keys = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret" };
    const child = spawnToEnd(palomaCommand(["backup", join(backups, "a"), "--media", media], { ...env, ...keys }));
    const output = Promise.all([child.stdout, child.stderr].map((stream) => new Response(stream).text()));
    const waits = () => bucket.requests.length > 0 && [...Deno.readDirSync(backups)].length > 0;
    await until(waits, "the backup to wait");
    child.kill("SIGINT");
    assert.equal((await child.status).code, 130, (await output).join());
    for (const folder of [tmp, backups]) assert.deepEqual([...Deno.readDirSync(folder)], [], folder);
    await bucket.close();
  },
});

Deno.test("a sealed backup that finds no room where it is opened says where that is", async () => {
  const wasMounted = await onSmallDisk(1, async (small) => {
    await using temp = await tempFolder();
    const sealed = join(temp.path, "sealed");
    const dataDir = join(temp.path, "data");
    const env = { PALOMA_DATA_DIR: dataDir, PALOMA_PASSPHRASE: "correct horse battery" };
    await runCommand(["account", "create", "--name", "acme"], env);
    await Deno.mkdir(join(dataDir, "media/01"), { recursive: true });
    await Deno.writeFile(join(dataDir, "media/01/med_01"), new Uint8Array(2_000_000));
    // Its files are in the folder, whatever the store is.
    await runCommand(["backup", sealed, "--media", ""], env);
    const elsewhere = { ...env, TMPDIR: small, PALOMA_DATA_DIR: join(temp.path, "elsewhere") };
    const { code, stderr } = await tryCommand(["restore", sealed, "--media", ""], elsewhere);
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^there is no space left for ${small}/paloma-\\w+\n$`));
    assert.deepEqual([...Deno.readDirSync(small)], []);
    return true;
  });
  if (!wasMounted) console.log("skipped: no tmpfs could be mounted here");
});
