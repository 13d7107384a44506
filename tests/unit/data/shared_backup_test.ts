import assert from "node:assert/strict";
import { join } from "node:path";
import { Plans } from "../../../src/account/plans.ts";
import { exists } from "../../../src/base/files.ts";
import { backup, restore } from "../../../src/data/backup.ts";
import { begin, isBegun, pathsOf } from "../../../src/data/data_folder.ts";
import { dataKeys } from "../../../src/data/rows.ts";
import { prove } from "../../../src/data/secret_key.ts";
import { backupData, type FilesElsewhere, restoreData } from "../../../src/data/shared_backup.ts";
import type { Bucket } from "../../../src/media/s3.ts";
import { filesOfBucket } from "../../../src/media/bucket_store.ts";
import { mediaKeys } from "../../../src/media/rows.ts";
import { systemRuntime } from "../../../src/runtime.ts";
import { openDenoKv } from "../../../src/store/deno_kv/deno_kv.ts";
import { denoKvFiles as engine } from "../../../src/store/deno_kv/file_engine.ts";
import { Change, key, type Kv, StoreError } from "../../../src/store/kv.ts";
import { type ChunkedKv, withChunks } from "../../../src/store/layers/chunk.ts";
import { withSealedContents } from "../../../src/store/layers/sealed_contents.ts";
import { makeSeal, sealKey } from "../../../src/store/seal.ts";
import { MemoryDisk, MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const runtime = systemRuntime(testRuntime().log);
const seal = makeSeal(sealKey("the secret of the operator"), runtime.random);
const ROW = key<string>("row");
const mark = () => Promise.resolve();
const at = (dataDir: string) => ({ dataDir, secretKey: null });

/** A backup of a store with one row. */
async function backupIn(folder: string): Promise<string> {
  const data = pathsOf(join(folder, "old"));
  await Deno.mkdir(join(folder, "old"));
  const kv = await openDenoKv(data.store, { runtime });
  await kv.commit(prove(new Change(), seal).set(dataKeys.schemaVersion(), 1).set(ROW, "restored"));
  kv.close();
  await backup(data, join(folder, "copy.backup"), engine);
  return join(folder, "copy.backup");
}

const shared = (disk: MemoryDisk): ChunkedKv => withChunks(new MemoryKv(disk), { runtime });
const beginOn = (kv: ChunkedKv) => begin(kv, { seal, plans: new Plans(kv), migrations: [] });

Deno.test("no gateway begins on a shared store whose files are still being restored", async () => {
  await using temp = await tempFolder();
  const disk = new MemoryDisk();
  let found: Awaited<ReturnType<typeof begin>> | undefined;
  await restoreData(await backupIn(temp.path), at(join(temp.path, "new")), {
    engine,
    runtime,
    mark,
    openShared: () => Promise.resolve(shared(disk)),
    files: { save: () => Promise.resolve(), load: async () => void (found = await beginOn(shared(disk))) },
  });
  assert.equal(found?.isRestoring, true);
  assert.equal((await shared(disk).get(ROW)).value, "restored");
  assert.equal((await shared(disk).get(dataKeys.restoring())).value, null);
});

Deno.test("a store on which a gateway has begun meanwhile is not overwritten", async () => {
  await using temp = await tempFolder();
  const disk = new MemoryDisk();
  const restoring = restoreData(await backupIn(temp.path), at(join(temp.path, "new")), {
    engine,
    runtime,
    // While the archive is being read.
    mark: async () => void await beginOn(shared(disk)),
    openShared: () => Promise.resolve(shared(disk)),
    files: null,
  });
  await assert.rejects(restoring, { code: "backup_failed" });
  assert.equal((await shared(disk).get(ROW)).value, null);
  assert.equal((await shared(disk).get(dataKeys.restoring())).value, null);
  assert.ok(await isBegun(shared(disk)));
});

Deno.test("a data folder whose files did not all reach the bucket is not opened", async () => {
  await using temp = await tempFolder();
  const paths = pathsOf(join(temp.path, "new"));
  const restoring = restoreData(await backupIn(temp.path), at(join(temp.path, "new")), {
    engine,
    runtime,
    mark,
    openShared: null,
    files: { save: () => Promise.resolve(), load: () => Promise.reject(new Error("the bucket is away")) },
  });
  await assert.rejects(restoring, { message: "the bucket is away" });
  const kv = await openDenoKv(paths.store, { runtime });
  const found = await beginOn(kv);
  kv.close();
  assert.equal(found?.isRestoring, true);
});

/** A bucket in memory, and what a gateway does to its files. */
function bucketOf(names: readonly string[]) {
  const objects = new Set(names);
  const bucket: Pick<Bucket, "get"> = {
    get: (name) => Promise.resolve(objects.has(name) ? new Blob([name]).stream() : null),
  };
  return {
    files: filesOfBucket({ bucket: bucket as Bucket, runtime, engine }),
    async receives(kv: Kv, fileId: string) {
      objects.add(fileId);
      await kv.commit(new Change().set(key("file", fileId), { id: fileId, accountId: "acc_1" }));
    },
    async ends(kv: Kv, fileId: string) {
      await kv.commit(new Change().delete(mediaKeys.file(fileId)));
      objects.delete(fileId);
    },
  };
}

/** The files that the rows of a backup name, and those that the backup has. */
async function filesIn(file: string, folder: string): Promise<{ named: string[]; had: string[] }> {
  const data = pathsOf(folder);
  await restore(file, data, { engine, runtime, mark });
  const kv = await openDenoKv(data.store, { runtime });
  const named = await Array.fromAsync(kv.list({ prefix: mediaKeys.files() }), ({ key }) => String(key[1]));
  kv.close();
  const shards = await Array.fromAsync(Deno.readDir(data.media));
  const had = shards.flatMap(({ name }) => [...Deno.readDirSync(join(data.media, name))].map(({ name }) => name));
  return { named, had: had.sort() };
}

Deno.test("a backup has the files in a bucket of accounts that have their contents sealed", async () => {
  await using temp = await tempFolder();
  const kv = withChunks(new MemoryKv(new MemoryDisk()), { runtime });
  const families = new Set(mediaKeys.files().slice(0, 1));
  const sealing = withSealedContents(kv, { seal, families, isChosen: () => true });
  const bucket = bucketOf([]);
  await bucket.receives(sealing, "med_1");
  const file = join(temp.path, "copy.backup");
  await backupData(at(temp.path), file, {
    engine,
    runtime,
    mark,
    openShared: () => Promise.resolve(kv),
    files: bucket.files,
  });
  assert.deepEqual((await filesIn(file, join(temp.path, "new"))).had, ["med_1"]);
});

/** The files of the bucket, with something that happens after they were first read. */
function andThen(files: FilesElsewhere, happen: () => Promise<void>): FilesElsewhere {
  let reads = 0;
  return {
    ...files,
    async save(kv, folder) {
      await files.save(kv, folder);
      if (reads++ === 0) await happen();
    },
  };
}

Deno.test("a backup of a shared store has the files of messages that end while it is made, and of new ones", async () => {
  await using temp = await tempFolder();
  const kv = shared(new MemoryDisk());
  const bucket = bucketOf([]);
  for (const fileId of ["med_1", "med_2"]) await bucket.receives(kv, fileId);
  const copied: ChunkedKv = {
    ...kv,
    async *rows() {
      const snapshot = await Array.fromAsync(kv.rows());
      await bucket.ends(kv, "med_1");
      yield* snapshot;
    },
    close() {},
  };
  const file = join(temp.path, "copy.backup");
  await backupData(at(join(temp.path, "none")), file, {
    engine,
    runtime,
    mark,
    openShared: () => Promise.resolve(copied),
    files: andThen(bucket.files, () => bucket.receives(kv, "med_3")),
  });
  const all = ["med_1", "med_2", "med_3"];
  assert.deepEqual(await filesIn(file, join(temp.path, "new")), { named: all, had: all });
});

Deno.test("a backup of a data folder with a bucket has the files that come while it is made", async () => {
  await using temp = await tempFolder();
  const data = pathsOf(join(temp.path, "old"));
  await Deno.mkdir(join(temp.path, "old"));
  const kv = await openDenoKv(data.store, { runtime });
  const bucket = bucketOf([]);
  await bucket.receives(kv, "med_1");
  const file = join(temp.path, "copy.backup");
  await backupData(at(join(temp.path, "old")), file, {
    engine,
    runtime,
    mark,
    openShared: null,
    files: andThen(bucket.files, () => bucket.receives(kv, "med_2")),
  });
  kv.close();
  const both = ["med_1", "med_2"];
  assert.deepEqual(await filesIn(file, join(temp.path, "new")), { named: both, had: both });
});

Deno.test("a file that ends before it is read fails no backup, not even where the bucket then refuses the read", async () => {
  await using temp = await tempFolder();
  const kv = withChunks(new MemoryKv(new MemoryDisk()), { runtime });
  const ids = ["med_1", "med_2"];
  for (const id of ids) await kv.commit(new Change().set(key("file", id), { id }));
  const reading: Pick<Bucket, "get"> = {
    async get(name) {
      if (name === "med_2") return new Blob([name]).stream();
      await kv.commit(new Change().delete(mediaKeys.file(name)));
      // As S3 answers for a missing object to those who may not list the bucket.
      throw new StoreError("unavailable", "403 AccessDenied");
    },
  };
  await filesOfBucket({ bucket: reading as Bucket, runtime, engine }).save(kv, temp.path);
  assert.ok(await exists(join(temp.path, "_2", "med_2")));
  await kv.commit(new Change().set(key("file", "med_3"), { id: "med_3" }));
  const refusing: Pick<Bucket, "get"> = {
    get: () => Promise.reject(new StoreError("unavailable", "403 AccessDenied")),
  };
  await assert.rejects(
    filesOfBucket({ bucket: refusing as Bucket, runtime, engine }).save(kv, temp.path),
    /AccessDenied/,
  );
});

Deno.test("a backup of a data folder without a store makes none, with a bucket too", async () => {
  await using temp = await tempFolder();
  const { files } = bucketOf([]);
  const backingUp = backupData(at(temp.path), join(temp.path, "copy.backup"), {
    engine,
    runtime,
    mark,
    openShared: null,
    files,
  });
  await assert.rejects(backingUp, /nothing to back up/);
  assert.deepEqual([...Deno.readDirSync(temp.path)], []);
});
