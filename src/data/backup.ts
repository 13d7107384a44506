/**
 * Backup and restore of a data folder; a backup may run beside a gateway. A backup is one archive of the store's
 * engine: a snapshot of the store, and the media files. The copy keeps its thread busy: run it in a process of its own.
 *
 * The secret key is left out on purpose, so that a backup alone reveals no credential. A restore needs the same
 * PALOMA_SECRET_KEY, or the old folder's `secret.key` in the new one: no command opens the folder with another key.
 */
import {
  exists,
  giveToOwner,
  isDiskFull,
  readUpTo,
  removedAtExit,
  syncFolder,
  unlessMissing,
  writeAll,
} from "../base/files.ts";
import { tmpdir } from "node:os";
import { dirname, join, posix, relative, sep } from "node:path";
import { OperatorError } from "../errors.ts";
import type { Clock, Runtime } from "../runtime.ts";
import { ARCHIVE_FORMAT, type ArchiveReader, type ArchiveWriter, type FileEngine } from "../store/file_engine.ts";
import { Change, type Kv, StoreError } from "../store/kv.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";
import { type DataPaths, inDataFolder, lockGateway } from "./data_folder.ts";
import { dataKeys } from "./rows.ts";
import { type FileSeal, openSealedFile, sealFile } from "./sealed_file.ts";

export interface BackupSummary {
  /** Rows of the store's tables. */
  rows: number;
  /** Media files, and their size together. */
  files: number;
  bytes: number;
}

/** Returns the error of a backup or restore that cannot be done; the message says why and what to do. */
export function backupError(message: string): OperatorError {
  return new OperatorError("backup_failed", message);
}

/** Media is copied in parts of this size. */
const PART_BYTES = 1024 * 1024;
/** Suffix of files that are still being written, here and in the media store. */
const UNFINISHED = ".part";
/** The same for what is yet to be sealed. */
const OPEN = ".open";

/** Throws OperatorError if the file exists already, or its folder does not. */
export async function assertNew(file: string): Promise<void> {
  // A mistyped path must not become a folder on the wrong disk.
  const folder = await unlessMissing(Deno.stat(dirname(file)));
  if (!folder?.isDirectory) throw backupError(`there is no folder ${dirname(file)}: make it first`);
  if (await exists(file)) throw backupError(`${file} already exists: a backup never overwrites a file`);
}

/** Fetches data that is kept elsewhere into the folder; null or absent for data that is there. */
interface Fetch {
  rows?: (() => Promise<void>) | null | undefined;
  /** Called again for files added in the meantime. */
  files?: (() => Promise<void>) | null | undefined;
}

interface BackupOptions extends Fetch {
  /** With what the backup is sealed; null or absent for one that is not. */
  seal?: FileSeal | null | undefined;
}

/**
 * Writes a backup to `file`, which must not exist yet, in a folder that does. Throws OperatorError, StoreError.
 */
export async function backup(
  data: DataPaths,
  file: string,
  engine: FileEngine,
  { rows: fetchRows, files: fetchFiles, seal = null }: BackupOptions = {},
): Promise<BackupSummary> {
  const isThere = fetchRows || await inDataFolder(dirname(data.store), () => exists(data.store));
  if (!isThere) throw backupError(`there is no store at ${data.store}: nothing to back up`);
  await assertNew(file);
  return await writeWhole(file, engine, async (unfinished) => {
    if (seal === null) return await fill(engine.createArchive(unfinished));
    return await withoutName(unfinished + OPEN, async (file, opened) => {
      const summary = await fill(await opened(engine.createArchive));
      await sealFile(file, unfinished, seal);
      return summary;
    });
  });

  async function fill(writer: ArchiveWriter): Promise<BackupSummary> {
    using archive = writer;
    // A file is there before its row, and goes after it: files are copied before the snapshot, and then those added in
    // the meantime.
    const copied = new Map<string, number>();
    await fetchFiles?.();
    await addFiles(archive, data.media, copied);
    await fetchRows?.();
    const rows = archive.addStore(data.store);
    await fetchFiles?.();
    await addFiles(archive, data.media, copied);
    archive.finish();
    return { rows, files: copied.size, bytes: [...copied.values()].reduce((sum, size) => sum + size, 0) };
  }
}

/**
 * Runs with a new empty file. `opened` opens it once more by its path, and then takes the name away, so that nothing
 * that is written to it is left on disk however the process ends.
 */
async function withoutName<T>(
  path: string,
  run: (file: Deno.FsFile, opened: <Opened>(open: (path: string) => Opened) => Promise<Opened>) => Promise<T>,
): Promise<T> {
  await unlessMissing(Deno.remove(path));
  using _ = removedAtExit(path);
  using file = await Deno.open(path, { createNew: true, read: true, write: true, mode: 0o600 });
  return await run(file, async (open) => {
    const opened = open(path);
    // Windows removes no open file: there it is removed at the end.
    await Deno.remove(path).catch(() => {});
    return opened;
  });
}

/** Records that a backup was made. Throws StoreError. */
export async function noteBackup(kv: Kv, clock: Clock): Promise<void> {
  await kv.commit(new Change().set(dataKeys.backedUpAt(), clock.now()));
}

export interface RestoreOptions {
  engine: FileEngine;
  runtime: Runtime;
  /** Records in the store that it was restored, before another process can open it. */
  mark: (kv: Kv) => Promise<void>;
  /** With what the backup is sealed; null or absent for one that is not. */
  seal?: FileSeal | null | undefined;
}

/**
 * Restores a backup into a data folder without store and media, while holding the folder's gateway lock. A sealed one is
 * opened into a temporary file. Throws OperatorError, StoreError.
 */
export async function restore(file: string, data: DataPaths, options: RestoreOptions): Promise<BackupSummary> {
  const { engine, seal } = options;
  const found = await unlessMissing(Deno.stat(file));
  if (!found) throw backupError(`there is no backup at ${file}`);
  if (!found.isFile) throw backupError(`${file} is not a backup of Paloma`);
  // Throws the system's error if the file may not be read.
  (await Deno.open(file)).close();
  if (!seal) {
    using archive = engine.openArchive(file);
    return await restoreFrom(archive, { file, data, ...options });
  }
  const path = join(tmpdir(), `paloma-${options.runtime.random.bytes(8).toHex()}`);
  return await withoutName(path, async (plain, opened) => {
    using archive = await opened(engine.openArchive);
    await openSealedFile(file, plain, seal).catch((error) => {
      throw isDiskFull(error) ? backupError(`there is no space left for ${path}`) : error;
    });
    return await restoreFrom(archive, { file, data, ...options });
  });
}

async function restoreFrom(
  archive: ArchiveReader,
  { file, data, engine, runtime, mark }: RestoreOptions & { file: string; data: DataPaths },
): Promise<BackupSummary> {
  const format = archive.format();
  if (format === null) throw backupError(`${file} is not a backup of Paloma`);
  if (format > ARCHIVE_FORMAT) {
    throw backupError(`${file} was made by a newer Paloma: restore it with that version`);
  }
  const lock = await lockGateway(dirname(data.store), engine);
  const written: string[] = [];
  try {
    await assertNoStore(data.store, engine);
    if (await hasFiles(data.media)) {
      throw backupError(
        `${data.media} holds files already, of a restore that was cut short or of another store: ` +
          "move it away, or restore into an empty folder",
      );
    }
    const { files, bytes } = await writeFiles(archive, data.media, { engine, written });
    // The store is written last and atomically: a folder without it counts as empty.
    return await writeWhole(data.store, engine, async (unfinished) => {
      const rows = archive.writeStore(unfinished);
      await withStore(unfinished, { engine, runtime }, mark);
      await giveToOwner(unfinished);
      // Commands take no lock: one may have created a store in the meantime.
      await assertNoStore(data.store, engine);
      return { rows, files, bytes };
    });
  } catch (error) {
    // These files would make a second attempt fail.
    for (const path of written) await Deno.remove(path).catch(() => {});
    throw error;
  } finally {
    lock.release();
  }
}

/** Runs with the store at the path, which is closed afterwards. Throws StoreError. */
export async function withStore<T>(
  path: string,
  { engine, runtime }: Pick<RestoreOptions, "engine" | "runtime">,
  run: (kv: ChunkedKv) => Promise<T>,
): Promise<T> {
  const kv = await engine.open(path, { runtime });
  try {
    return await run(kv);
  } finally {
    kv.close();
  }
}

/** Throws if there is a store, or a leftover log, which the engine would replay into the restored store. */
async function assertNoStore(store: string, engine: FileEngine): Promise<void> {
  if (await exists(store)) {
    throw backupError(`${dirname(store)} holds data already: restore into an empty folder`);
  }
  for (const leftover of engine.leftovers(store)) {
    if (!await exists(leftover)) continue;
    throw backupError(
      `${leftover} is left of a store that was here and would spoil the restored one: ` +
        "move it away, with what else is left of that store, or restore into an empty folder",
    );
  }
  await engine.forget(store);
}

/** Writes a file under a temporary name, syncs it to disk, and only then renames it. */
async function writeWhole<T>(
  file: string,
  engine: FileEngine,
  write: (unfinished: string) => Promise<T>,
): Promise<T> {
  const unfinished = file + UNFINISHED;
  await Deno.mkdir(dirname(file), { recursive: true, mode: 0o700 });
  // Always a new file, never the target of a link at this path.
  await unlessMissing(Deno.remove(unfinished));
  (await Deno.open(unfinished, { createNew: true, write: true, mode: 0o600 })).close();
  using _ = removedAtExit(unfinished);
  try {
    const result = await write(unfinished);
    await sync(unfinished);
    await Deno.rename(unfinished, file);
    await syncFolder(dirname(file)).catch(async (error) => {
      // A failure leaves no file that looks whole.
      await Deno.remove(file);
      throw error;
    });
    return result;
  } catch (error) {
    if (error instanceof OperatorError || error instanceof StoreError) throw error;
    const failure = engine.storeError(error);
    const isFull = failure instanceof StoreError && failure.code === "full";
    throw isFull ? backupError(`there is no space left for ${file}`) : failure;
  }
}

async function sync(path: string): Promise<void> {
  using file = await Deno.open(path);
  await file.sync();
}

/** Adds the files whose paths are not in `copied` yet, and records their sizes there. */
async function addFiles(archive: ArchiveWriter, folder: string, copied: Map<string, number>): Promise<void> {
  for await (const path of filesBelow(folder)) {
    const name = relative(folder, path).replaceAll(sep, posix.sep);
    if (copied.has(name)) continue;
    // A file removed in the meantime is no longer needed.
    const file = await unlessMissing(Deno.open(path));
    if (file) copied.set(name, await archive.addFile(name, partsOf(file)));
  }
}

/** Yields the file in parts, and closes it at the end. */
async function* partsOf(file: Deno.FsFile): AsyncGenerator<Uint8Array> {
  using _ = file;
  for (let part; (part = await readUpTo(file, PART_BYTES)).length > 0;) yield part;
}

async function* filesBelow(folder: string): AsyncGenerator<string> {
  const entries = await unlessMissing(Array.fromAsync(Deno.readDir(folder)));
  for (const { name, isDirectory, isFile } of entries ?? []) {
    if (isDirectory) yield* filesBelow(join(folder, name));
    else if (isFile && !name.endsWith(UNFINISHED)) yield join(folder, name);
  }
}

/** Writes the archive's files; adds the path of each to `written`. */
async function writeFiles(
  archive: ArchiveReader,
  folder: string,
  { engine, written }: { engine: FileEngine; written: string[] },
): Promise<{ files: number; bytes: number }> {
  const names = archive.files();
  const folders = new Set<string>();
  let bytes = 0;
  for (const name of names) {
    if (relative(folder, join(folder, name)).startsWith("..")) {
      throw backupError(`the backup holds a file outside of its folder: ${name}`);
    }
    await writeWhole(join(folder, name), engine, async (unfinished) => {
      using file = await Deno.open(unfinished, { write: true });
      for (const part of archive.readFile(name)) {
        await writeAll(file, part);
        bytes += part.length;
      }
      for (const made of [folder, join(folder, dirname(name))]) {
        if (folders.has(made)) continue;
        folders.add(made);
        await giveToOwner(made);
      }
      await giveToOwner(unfinished);
    });
    written.push(join(folder, name));
  }
  return { files: names.length, bytes };
}

async function hasFiles(folder: string): Promise<boolean> {
  for await (const _ of filesBelow(folder)) return true;
  return false;
}
