import assert from "node:assert/strict";
import { basename, dirname, join } from "node:path";
import { AlreadyRunning, type DataPaths, lockGateway } from "../../../src/data/data_folder.ts";
import { systemRuntime } from "../../../src/runtime.ts";
import { exists } from "../../../src/base/files.ts";
import { backup as backupWith, restore as restoreWith } from "../../../src/data/backup.ts";
import { OperatorError } from "../../../src/errors.ts";
import { openDenoKv } from "../../../src/store/deno_kv/deno_kv.ts";
import { denoKvFiles } from "../../../src/store/deno_kv/file_engine.ts";
import { Change, type Kv } from "../../../src/store/kv.ts";
import { seededRandom, testRuntime } from "../../support/runtime.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const WRITER = new URL("../../support/store_writer.ts", import.meta.url).pathname;
const runtime = systemRuntime(testRuntime().log);
const backup = (data: DataPaths, file: string, options: Parameters<typeof backupWith>[3] = {}) =>
  backupWith(data, file, denoKvFiles, options);
const restore = (file: string, data: DataPaths, mark = (_: Kv) => Promise.resolve()) =>
  restoreWith(file, data, { engine: denoKvFiles, runtime, mark });

interface Bench {
  folder: string;
  data: DataPaths;
  /** An empty place to restore to. */
  fresh: DataPaths;
}

/** Whose folder it is, where root restores. */
const SOMEBODY = 4711;

async function withBench(run: (bench: Bench) => Promise<void>): Promise<void> {
  await using temp = await tempFolder();
  const folder = temp.path;
  const paths = (name: string) => ({ store: join(folder, name, "store.db"), media: join(folder, name, "media") });
  await run({ folder, data: paths("data"), fresh: paths("fresh") });
}

async function withStore<T>({ store }: DataPaths, use: (kv: Kv) => Promise<T>): Promise<T> {
  const kv = await openDenoKv(store, { runtime });
  try {
    return await use(kv);
  } finally {
    kv.close();
  }
}

/** What is in the folder of a store, with sizes. */
async function entriesOf({ store }: DataPaths): Promise<[string, number][]> {
  const entries = await Array.fromAsync(Deno.readDir(dirname(store)));
  return entries.map(({ name }): [string, number] => [name, Deno.statSync(join(dirname(store), name)).size]).sort();
}

async function addFile({ media }: DataPaths, name: string, bytes: Uint8Array): Promise<void> {
  await Deno.mkdir(dirname(join(media, name)), { recursive: true });
  await Deno.writeFile(join(media, name), bytes);
}

Deno.test("what is backed up comes back: rows, counters, large values and files", () =>
  withBench(async ({ folder, data, fresh }) => {
    const values: [string, unknown][] = [
      ["text", "a text, 😀 and \ud800"],
      ["record", { bytes: new Uint8Array([0, 1, 255]), none: null, nested: new Map([[1, new Date(0)]]) }],
      ["large", "x".repeat(1_500_000)],
    ];
    await withStore(data, async (kv) => {
      for (const [name, value] of values) await kv.commit(new Change().set(["k", name], value).add(["n"], -3));
    });
    const files: [string, Uint8Array][] = [
      ["ab/med_empty", new Uint8Array()],
      ["ab/med_small", new Uint8Array([1, 2, 3])],
      ["cd/med_exact", seededRandom(1).bytes(1024 * 1024)],
      ["cd/med_large", seededRandom(2).bytes(2_500_000)],
    ];
    for (const [name, bytes] of files) await addFile(data, name, bytes);
    await addFile(data, "cd/med_unfinished.part", new Uint8Array(10));

    const made = await backup(data, join(folder, "copy.backup"));
    const place = dirname(fresh.store);
    await Deno.mkdir(place);
    if (Deno.uid() === 0) await Deno.chown(place, SOMEBODY, SOMEBODY);
    const back = await restore(join(folder, "copy.backup"), fresh);
    assert.deepEqual(back, made);
    assert.deepEqual([made.files, made.bytes], [4, 3 + 1024 * 1024 + 2_500_000]);

    await withStore(fresh, async (kv) => {
      for (const [name, value] of values) assert.deepEqual((await kv.get(["k", name])).value, value);
      assert.equal((await kv.get(["n"])).value, -9n);
      assert.ok(await kv.commit(new Change().add(["n"], 1)));
    });
    for (const [name, bytes] of files) assert.deepEqual(await Deno.readFile(join(fresh.media, name)), bytes);
    await assert.rejects(Deno.stat(join(fresh.media, "cd/med_unfinished.part")), Deno.errors.NotFound);
    if (Deno.build.os === "windows") return;
    for (const path of [join(folder, "copy.backup"), fresh.store, join(fresh.media, "cd/med_large")]) {
      assert.equal((await Deno.stat(path)).mode! & 0o777, 0o600, path);
    }
    const { uid } = await Deno.stat(place);
    for (const path of [fresh.store, fresh.media, join(fresh.media, "cd"), join(fresh.media, "cd/med_large")]) {
      assert.equal((await Deno.stat(path)).uid, uid, `${path} is its folder's owner's`);
    }
  }));

Deno.test("a backup of a store that is being written shows one moment, and the writer goes on", () =>
  withBench(async ({ folder, data, fresh }) => {
    await Deno.mkdir(dirname(data.store), { recursive: true });
    const writer = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", WRITER, data.store, "500"],
      stdout: "piped",
    }).spawn();
    const lines = writer.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const untilAcknowledged = async (count: number) => {
      for (let rows = 0; rows < count;) rows += (await lines.read()).value?.match(/done/g)?.length ?? 0;
    };
    await untilAcknowledged(2_000);
    await backup(data, join(folder, "copy.backup"));
    await untilAcknowledged(200);
    writer.kill("SIGKILL");
    await lines.cancel();
    await writer.status;

    await restore(join(folder, "copy.backup"), fresh);
    await withStore(fresh, async (kv) => {
      let rows = 0n;
      for await (const _ of kv.list({ prefix: ["row"] })) rows++;
      assert.ok(rows >= 2_000n);
      assert.equal((await kv.get(["rows"])).value, rows, "rows and their counter are of one moment");
    });
  }));

Deno.test("the secret key is not in the backup", () =>
  withBench(async ({ folder, data }) => {
    await withStore(data, (kv) => kv.commit(new Change().set(["k"], 1)));
    const secret = "5ec2e7".repeat(10) + "beef";
    await Deno.writeTextFile(join(dirname(data.store), "secret.key"), secret);
    await backup(data, join(folder, "copy.backup"));
    const text = new TextDecoder("latin1").decode(await Deno.readFile(join(folder, "copy.backup")));
    assert.ok(text.includes("paloma_backup") && !text.includes(secret));
  }));

Deno.test("nothing is overwritten, and what cannot be done is said and leaves nothing behind", () =>
  withBench(async ({ folder, data, fresh }) => {
    const copy = join(folder, "copy.backup");
    await assert.rejects(backup(data, copy), /nothing to back up/);
    await assert.rejects(restore(copy, fresh), /no backup at/);
    await assert.rejects(restore(folder, fresh), /is not a backup/);
    await withStore(data, (kv) => kv.commit(new Change().set(["k"], 1)));
    await backup(data, copy);
    const before = await Deno.readFile(copy);
    await assert.rejects(backup(data, copy), /already exists/);
    assert.deepEqual(await Deno.readFile(copy), before);
    await assert.rejects(backup(data, join(folder, "mistyped", "copy.backup")), /no folder .*mistyped/);
    await assert.rejects(Deno.stat(join(folder, "mistyped")), Deno.errors.NotFound);
    await assert.rejects(restore(copy, data), /empty folder/);
    await addFile(fresh, "ab/med_1", new Uint8Array([1]));
    await assert.rejects(restore(copy, fresh), {
      code: "backup_failed",
      message: /media holds files already, .*move it/,
    });
    await Deno.remove(fresh.media, { recursive: true });
    await Deno.writeTextFile(join(folder, "other"), "not a backup");
    await assert.rejects(restore(join(folder, "other"), fresh), /not a backup/);
    await assert.rejects(restore(data.store, fresh), /not a backup/);
    await Deno.writeFile(join(folder, "torn"), before.subarray(0, before.length - 8192));
    await assert.rejects(restore(join(folder, "torn"), fresh));
    await assert.rejects(Deno.stat(fresh.store), Deno.errors.NotFound);
    const left = Array.from(Deno.readDirSync(folder), (entry) => entry.name);
    assert.ok(!left.some((name) => name.endsWith(".part")));
  }));

Deno.test("what a killed gateway left beside its store is never mixed into a restored one", () =>
  withBench(async ({ folder, data, fresh }) => {
    const copy = join(folder, "copy.backup");
    await withStore(data, (kv) => kv.commit(new Change().set(["k"], "as backed up")));
    await backup(data, copy);

    await Deno.mkdir(dirname(fresh.store), { recursive: true });
    const writer = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", WRITER, fresh.store, "500"],
      stdout: "piped",
    }).spawn();
    const lines = writer.stdout.getReader();
    await lines.read();
    writer.kill("SIGKILL");
    await lines.cancel();
    await writer.status;
    await Deno.remove(fresh.store);

    await assert.rejects(restore(copy, fresh), (error) => {
      assert.ok(error instanceof OperatorError);
      assert.ok(error.message.includes(`${fresh.store}-wal `), error.message);
      assert.match(error.message, /move it away/);
      return true;
    });
    await assert.rejects(Deno.stat(fresh.store), Deno.errors.NotFound);
    assert.ok((await entriesOf(fresh)).some(([name, size]) => name === "store.db-wal" && size > 0), "the log is gone");

    for (const suffix of ["-wal", "-shm"]) await Deno.remove(fresh.store + suffix);
    await restore(copy, fresh);
    assert.ok(!await exists(`${fresh.store}-open`), "the restored store lacks no log");
    await withStore(fresh, async (kv) => assert.equal((await kv.get(["k"])).value, "as backed up"));
  }));

Deno.test("a restored store is marked before it has its name, or it does not get one", () =>
  withBench(async ({ folder, data, fresh }) => {
    const copy = join(folder, "copy.backup");
    await withStore(data, (kv) => kv.commit(new Change().set(["k"], "as backed up")));
    await backup(data, copy);
    await assert.rejects(
      restore(copy, fresh, async (kv) => {
        await kv.commit(new Change().set(["restored"], true));
        assert.ok((await entriesOf(fresh)).every(([name]) => name !== basename(fresh.store)));
        throw new Error("no room");
      }),
      /no room/,
    );
    assert.ok((await entriesOf(fresh)).every(([name]) => !name.startsWith(basename(fresh.store))));

    await restore(copy, fresh, (kv) => kv.commit(new Change().set(["restored"], true)).then(() => {}));
    const files = (await entriesOf(fresh)).map(([name]) => name);
    assert.deepEqual(files.filter((name) => name.startsWith(basename(fresh.store))), [basename(fresh.store)]);
    await withStore(fresh, async (kv) => {
      assert.equal((await kv.get(["restored"])).value, true);
      assert.equal((await kv.get(["k"])).value, "as backed up");
    });
  }));

Deno.test("a restore that fails half-way leaves the folder as empty as it was", () =>
  withBench(async ({ folder, data, fresh }) => {
    const copy = join(folder, "copy.backup");
    await withStore(data, (kv) => kv.commit(new Change().set(["k"], "as backed up")));
    for (const name of ["ab/med_1", "cd/med_2"]) await addFile(data, name, seededRandom(1).bytes(500_000));
    await backup(data, copy);
    const damaged = join(folder, "damaged.backup");
    const bytes = await Deno.readFile(copy);
    bytes.fill(0xff, bytes.length / 2, bytes.length / 2 + 100_000);
    await Deno.writeFile(damaged, bytes);
    await assert.rejects(restore(damaged, fresh), { message: /damaged\.backup is damaged/ });
    const full = () => Promise.reject(new Error("no room"));
    await assert.rejects(restore(copy, fresh, full), /no room/);
    assert.equal((await restore(copy, fresh)).files, 2);
  }));

Deno.test("a backup or restore that finds no space names what it was writing: the data may lie on another disk", () =>
  withBench(async ({ folder, data, fresh }) => {
    const full = (): never => {
      throw new Error("database or disk is full");
    };
    const file = join(folder, "copy.backup");
    await withStore(data, (kv) => kv.commit(new Change().set(["k"], 1)));
    const noWriter = (path: string) => Object.assign(denoKvFiles.createArchive(path), { finish: full });
    await assert.rejects(backupWith(data, file, { ...denoKvFiles, createArchive: noWriter }), {
      code: "backup_failed",
      message: `there is no space left for ${file}`,
    });
    await backup(data, file);
    const noReader = (path: string) => Object.assign(denoKvFiles.openArchive(path), { writeStore: full });
    const engine = { ...denoKvFiles, openArchive: noReader };
    await assert.rejects(restoreWith(file, fresh, { engine, runtime, mark: () => Promise.resolve() }), {
      code: "backup_failed",
      message: `there is no space left for ${fresh.store}`,
    });
  }));

Deno.test("a restore beside any leftover of a store is refused by its name and changes nothing", () =>
  withBench(async ({ folder, data, fresh }) => {
    const copy = join(folder, "copy.backup");
    await withStore(data, (kv) => kv.commit(new Change().set(["k"], 1)));
    await addFile(data, "ab/med_1", new Uint8Array([1]));
    await backup(data, copy);
    (await lockGateway(dirname(fresh.store), denoKvFiles)).release();
    for (const suffix of ["-wal", "-shm", "-journal"]) {
      const leftover = fresh.store + suffix;
      await Deno.writeTextFile(leftover, "left");
      const before = await entriesOf(fresh);
      await assert.rejects(restore(copy, fresh), new RegExp(`${basename(leftover)} `));
      assert.deepEqual(await entriesOf(fresh), before);
      await Deno.remove(leftover);
    }
  }));

Deno.test("a restore holds the gateway's lock: refused while one runs, and let go of at the end", () =>
  withBench(async ({ folder, data, fresh }) => {
    const copy = join(folder, "copy.backup");
    await withStore(data, (kv) => kv.commit(new Change().set(["k"], 1)));
    await backup(data, copy);
    const gateway = await lockGateway(dirname(fresh.store), denoKvFiles);
    const before = await entriesOf(fresh);
    await assert.rejects(restore(copy, fresh), AlreadyRunning);
    assert.deepEqual(await entriesOf(fresh), before);
    gateway.release();

    await restore(copy, fresh);
    (await lockGateway(dirname(fresh.store), denoKvFiles)).release();
    await assert.rejects(restore(copy, fresh), /holds data already/);
    (await lockGateway(dirname(fresh.store), denoKvFiles)).release();
  }));

Deno.test("a link that lies where a backup begins is replaced, and what it points to stays as it is", () =>
  withBench(async ({ folder, data }) => {
    await withStore(data, (kv) => kv.commit(new Change().set(["row"], 1)));
    const precious = join(folder, "precious");
    await Deno.writeTextFile(precious, "of somebody else");
    const file = join(folder, "b.backup");
    await Deno.symlink(precious, `${file}.part`);
    await backup(data, file);
    assert.equal(await Deno.readTextFile(precious), "of somebody else");
    assert.ok((await Deno.lstat(file)).isFile);
  }));

Deno.test("while a sealed backup is made, nothing that can be read has a name", () =>
  withBench(async ({ folder, data, fresh }) => {
    const secret = "a text that nobody is to find on disk";
    await withStore(data, (kv) => kv.commit(new Change().set(["row"], secret)));
    const seal = { passphrase: "correct horse battery", random: runtime.random };
    const file = join(folder, "s.backup");
    const there: string[] = [];
    const files = async () => {
      for await (const { name, isFile } of Deno.readDir(folder)) {
        if (isFile) there.push(`${name} ${(await Deno.readFile(join(folder, name))).length}`);
      }
    };
    // Also what an earlier one, killed, may have left.
    for (const name of [".part", ".part.open"]) await Deno.writeTextFile(file + name, secret);
    await backup(data, file, { files, seal });
    assert.deepEqual(there, ["s.backup.part 0", "s.backup.part 0"]);
    assert.deepEqual(Array.from(Deno.readDirSync(folder), ({ name }) => name).sort(), ["data", "s.backup"]);
    assert.ok(!(await Deno.readTextFile(file)).includes(secret));
    await restoreWith(file, fresh, { engine: denoKvFiles, runtime, seal, mark: () => Promise.resolve() });
    await withStore(fresh, async (kv) => assert.equal((await kv.get(["row"])).value, secret));
  }));
