/**
 * Backup and restore of data wherever it is. What is outside the data folder, a shared store or files in a bucket, goes
 * by way of a temporary folder: a backup of any engine can be restored into any other.
 */
import { join } from "node:path";
import { deleteRange } from "../store/delete_range.ts";
import { Change, type Kv, type Mutation, type Row } from "../store/kv.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";
import { writeMany } from "../store/limits.ts";
import { backup, backupError, type BackupSummary, restore, type RestoreOptions, withStore } from "./backup.ts";
import { makeCopyFolder, removeLeftCopies } from "./copies.ts";
import { assertSecret, type DataConfig, type DataPaths, pathsOf } from "./data_folder.ts";
import { dataKeys } from "./rows.ts";

/** Files kept outside the data folder. */
export interface FilesElsewhere {
  /** Writes every file that has a row into the folder, in the layout of a data folder, unless it is there already. */
  save(kv: Kv, folder: string): Promise<void>;
  /** Imports every file of such a folder. */
  load(kv: Kv, folder: string): Promise<void>;
}

export interface CopyOptions extends RestoreOptions {
  /** Opens the shared store; null if the store is in the data folder. */
  openShared: (() => Promise<ChunkedKv>) | null;
  /** Null if the files are in the data folder. */
  files: FilesElsewhere | null;
}

/** As `backup`. A server without snapshots is read while others write to it. Throws what `backup` throws. */
export async function backupData(config: DataConfig, file: string, options: CopyOptions): Promise<BackupSummary> {
  const { engine, runtime, openShared, files, seal } = options;
  return await withPaths(config, options, async (paths) => {
    const inFolder = (run: (kv: Kv) => Promise<void>) => withStore(paths.store, options, run);
    const saveFiles = files && ((kv: Kv) => files.save(kv, paths.media));
    using opened = new DisposableStack();
    const shared = await openShared?.();
    opened.defer(() => shared?.close());
    if (shared) await assertSecret(shared, config, runtime);
    return await backup(paths, file, engine, {
      seal,
      rows: shared && (() => inFolder((copy) => copyRows(shared.rows(), copy))),
      files: saveFiles && (() => shared ? saveFiles(shared) : inFolder(saveFiles)),
    });
  });
}

/**
 * As `restore`, only into an empty store. No gateway accepts a store whose restore was interrupted. Throws as `restore`
 * does.
 */
export async function restoreData(file: string, config: DataConfig, options: CopyOptions): Promise<BackupSummary> {
  const { openShared, files, mark } = options;
  if (!openShared && !files) return await restore(file, pathsOf(config.dataDir), options);
  // Until everything is in its place, files too.
  const markUnfinished = async (kv: Kv) => {
    await mark(kv);
    await kv.commit(new Change().set(dataKeys.restoring(), true));
  };
  return await withPaths(config, options, async (paths) => {
    using opened = new DisposableStack();
    const shared = await openShared?.();
    opened.defer(() => shared?.close());
    for await (const _ of shared?.rows() ?? []) {
      throw backupError("the store holds data already: restore into an empty one");
    }
    const summary = await restore(file, paths, { ...options, mark: markUnfinished });
    await withStore(paths.store, options, async (restored) => {
      if (shared) await claim(shared);
      await files?.load(shared ?? restored, paths.media);
      if (shared) await copyRows(restored.rows(), shared);
      await deleteRange(shared ?? restored, { prefix: dataKeys.restorings() });
    });
    return summary;
  });
}

/** Marks a shared store as being restored. Throws OperatorError if it is no longer new. */
async function claim(shared: Kv): Promise<void> {
  const change = new Change().checkAbsent(dataKeys.schemaVersion()).checkAbsent(dataKeys.restoring())
    .set(dataKeys.restoring(), true);
  if (await shared.commit(change) === null) {
    throw backupError(
      "a gateway or another restore has begun to use the store meanwhile: restore into an empty one",
    );
  }
}

/** Runs with the folder's own paths, and with paths in a temporary folder for data that is kept elsewhere. */
async function withPaths<T>(
  config: DataConfig,
  { engine, openShared, files }: CopyOptions,
  run: (paths: DataPaths) => Promise<T>,
): Promise<T> {
  const data = pathsOf(config.dataDir);
  if (!openShared && !files) return await run(data);
  await removeLeftCopies(engine);
  using copies = await makeCopyFolder(engine);
  return await run({
    store: openShared ? join(copies.path, "paloma.db") : data.store,
    media: files ? join(copies.path, "media") : data.media,
  });
}

async function copyRows(rows: AsyncIterable<Row<unknown>>, to: Kv): Promise<void> {
  async function* copies(): AsyncGenerator<Mutation> {
    for await (const { key, value } of rows) yield { kind: "set", key, value };
  }
  await writeMany(to, copies());
}
