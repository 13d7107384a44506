/**
 * Backup and restore of a data folder, also while a gateway runs on it. A backup is one SQLite file: the store's tables
 * as they stood in one moment, and the media files cut in parts in a table of their own.
 *
 * Rows are copied one by one inside a read transaction, which blocks no writer. (`VACUUM INTO` and SQLite's backup API
 * would do it, but Deno 2.4 offers neither.) The copy keeps its thread busy: run it in a process of its own.
 *
 * The secret key is left out on purpose: a backup alone opens no credential. Whoever restores needs the same
 * PALOMA_SECRET_KEY, or `secret.key` of the old folder in the new one: no command opens the folder with another.
 */
import { dirname, join, posix, relative, sep } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { lockGateway } from "./gateway_lock.ts";
import { storeError } from "../store/deno_kv/store_error.ts";

/** Where a data folder keeps what is backed up. */
export interface DataPaths {
  store: string;
  media: string;
}

export interface BackupSummary {
  /** Rows of the store's tables. */
  rows: number;
  /** Media files, and their size together. */
  files: number;
  bytes: number;
}

/** What was asked for cannot be done; the message says why and what to do. */
export class BackupError extends Error {
  override name = "BackupError";
}

const FORMAT = 1;
const FORMAT_TABLE = "paloma_backup";
const FILE_TABLE = "paloma_file";
const PART_BYTES = 1024 * 1024;
const ROWS_A_PAGE = 500;
/** Files that are still being written end so, here and in the media store. */
const UNFINISHED = ".part";
/** What SQLite keeps beside a store while it is open. A process that is killed leaves it there. */
const LEFTOVERS = ["-wal", "-shm", "-journal"];

/** Writes a backup to `file`, which must not exist yet. Throws BackupError, StoreError. */
export async function backup(data: DataPaths, file: string): Promise<BackupSummary> {
  if (!await exists(data.store)) throw new BackupError(`there is no store at ${data.store}: nothing to back up`);
  if (await exists(file)) throw new BackupError(`${file} exists already: a backup never overwrites a file`);
  return await writeWhole(file, async (unfinished) => {
    const target = openTarget(unfinished);
    const source = new DatabaseSync(data.store);
    try {
      target.exec(`CREATE TABLE ${FORMAT_TABLE} (format INTEGER NOT NULL)`);
      target.exec(`INSERT INTO ${FORMAT_TABLE} VALUES (${FORMAT})`);
      target.exec(`CREATE TABLE ${FILE_TABLE} (path TEXT, part INTEGER, bytes BLOB, PRIMARY KEY (path, part))`);
      // A file is on disk before its row: those of before the snapshot, then those that came in the meantime.
      const copied = new Map<string, number>();
      await copyFilesIn(data.media, target, copied);
      const rows = copyTables(source, target);
      await copyFilesIn(data.media, target, copied);
      target.exec("COMMIT");
      return { rows, files: copied.size, bytes: [...copied.values()].reduce((sum, size) => sum + size, 0) };
    } finally {
      source.close();
      target.close();
    }
  });
}

/**
 * Restores a backup into a data folder without store and media, and holds the folder's gateway lock meanwhile. Throws
 * BackupError, AlreadyRunning, StoreError.
 */
export async function restore(file: string, data: DataPaths): Promise<BackupSummary> {
  if (!await exists(file)) throw new BackupError(`there is no backup at ${file}`);
  const source = new DatabaseSync(file, { readOnly: true });
  try {
    assertBackup(source, file);
    const lock = await lockGateway(dirname(data.store));
    try {
      return await restoreFrom(source, data);
    } finally {
      await lock.release();
    }
  } finally {
    source.close();
  }
}

async function restoreFrom(source: DatabaseSync, data: DataPaths): Promise<BackupSummary> {
  await assertNoStore(data.store);
  if (await hasEntries(data.media)) throw holdsData(data.store);
  const { files, bytes } = await copyFilesOut(source, data.media);
  // The store comes last and whole: a folder without it is an empty folder.
  return await writeWhole(data.store, async (unfinished) => {
    const target = openTarget(unfinished);
    try {
      const rows = copyTables(source, target);
      target.exec("COMMIT");
      // Commands take no lock: one may have made a store meanwhile.
      await assertNoStore(data.store);
      return { rows, files, bytes };
    } finally {
      target.close();
    }
  });
}

/** SQLite would play a log that was left behind into the restored store, and mix the rows of both. */
async function assertNoStore(store: string): Promise<void> {
  if (await exists(store)) throw holdsData(store);
  for (const leftover of LEFTOVERS.map((suffix) => store + suffix)) {
    if (!await exists(leftover)) continue;
    throw new BackupError(
      `${leftover} is left of a store that was here and would spoil the restored one: ` +
        "move it away, with what else is left of that store, or restore into an empty folder",
    );
  }
}

function holdsData(store: string): BackupError {
  return new BackupError(`${dirname(store)} holds data already: restore into an empty folder`);
}

/** Makes a file under a name of its own, puts it on disk, and only then gives it its name. */
async function writeWhole<T>(file: string, write: (unfinished: string) => Promise<T>): Promise<T> {
  const unfinished = file + UNFINISHED;
  await Deno.mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await Deno.writeFile(unfinished, new Uint8Array(), { mode: 0o600 });
  try {
    const result = await write(unfinished);
    await sync(unfinished);
    await Deno.rename(unfinished, file);
    if (Deno.build.os !== "windows") await sync(dirname(file));
    return result;
  } catch (error) {
    await Deno.remove(unfinished).catch(() => {});
    throw error instanceof BackupError ? error : storeError(error);
  }
}

async function sync(path: string): Promise<void> {
  const file = await Deno.open(path);
  try {
    await file.sync();
  } finally {
    file.close();
  }
}

/** A database in one long transaction. It needs no journal of its own: what is cut short is thrown away. */
function openTarget(path: string): DatabaseSync {
  const target = new DatabaseSync(path);
  target.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
  return target;
}

interface SchemaEntry {
  type: string;
  name: string;
  sql: string;
}

/** Copies every table and index of the store as they stand in one moment; answers the number of rows. */
function copyTables(source: DatabaseSync, target: DatabaseSync): number {
  source.exec("BEGIN");
  try {
    const schema = source.prepare(
      "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' " +
        `AND tbl_name NOT IN ('${FORMAT_TABLE}', '${FILE_TABLE}')`,
    ).all() as unknown as SchemaEntry[];
    let rows = 0;
    for (const { name, sql } of schema.filter((entry) => entry.type === "table")) {
      target.exec(sql);
      rows += copyRows(source, target, name);
    }
    for (const { sql } of schema.filter((entry) => entry.type !== "table")) target.exec(sql);
    return rows;
  } finally {
    source.exec("COMMIT");
  }
}

/** Page by page along the primary key: the statement iterator of Deno 2.4 crashes the process every now and then. */
function copyRows(source: DatabaseSync, target: DatabaseSync, table: string): number {
  const columns = source.prepare(`SELECT name, pk FROM pragma_table_info('${table}') ORDER BY cid`).all()
    .map(({ name, pk }) => ({ name: String(name), quoted: `"${name}"`, pk: Number(pk) }));
  const key = columns.filter((column) => column.pk > 0).toSorted((a, b) => a.pk - b.pk);
  const names = columns.map((column) => column.quoted).join(", ");
  const keyNames = key.map((column) => column.quoted).join(", ");
  const insert = target.prepare(`INSERT INTO "${table}" (${names}) VALUES (${columns.map(() => "?").join(", ")})`);
  const page = (where: string) => {
    const read = source.prepare(`SELECT ${names} FROM "${table}" ${where} ORDER BY ${keyNames} LIMIT ${ROWS_A_PAGE}`);
    read.setReadBigInts(true);
    return (...after: SQLInputValue[]) => read.all(...after) as Record<string, SQLInputValue>[];
  };
  const first = page("");
  const next = page(`WHERE (${keyNames}) > (${key.map(() => "?").join(", ")})`);
  let count = 0;
  for (let rows = first(); rows.length > 0;) {
    for (const row of rows) insert.run(...columns.map(({ name }) => row[name]!));
    count += rows.length;
    const last = rows.at(-1)!;
    rows = next(...key.map(({ name }) => last[name]!));
  }
  return count;
}

/** Copies the files that are not in `copied` yet, by path, and notes their sizes there. */
async function copyFilesIn(folder: string, target: DatabaseSync, copied: Map<string, number>): Promise<void> {
  const insert = target.prepare(`INSERT INTO ${FILE_TABLE} VALUES (?, ?, ?)`);
  for await (const path of filesBelow(folder)) {
    const name = relative(folder, path).replaceAll(sep, posix.sep);
    if (copied.has(name)) continue;
    // A file that is removed meanwhile is one that nobody needs any more.
    const file = await Deno.open(path).catch(ignoreMissing);
    if (!file) continue;
    try {
      const part = new Uint8Array(PART_BYTES);
      let size = 0;
      for (let number = 0;; number++) {
        const length = await fill(file, part);
        if (length > 0 || number === 0) insert.run(name, number, part.slice(0, length));
        size += length;
        if (length < PART_BYTES) break;
      }
      copied.set(name, size);
    } finally {
      file.close();
    }
  }
}

/** Reads until the buffer is full or the file ends. */
async function fill(file: Deno.FsFile, buffer: Uint8Array): Promise<number> {
  let length = 0;
  while (length < buffer.length) {
    const read = await file.read(buffer.subarray(length));
    if (read === null) break;
    length += read;
  }
  return length;
}

async function* filesBelow(folder: string): AsyncGenerator<string> {
  const entries = await Array.fromAsync(Deno.readDir(folder)).catch(ignoreMissing);
  for (const { name, isDirectory, isFile } of entries ?? []) {
    if (isDirectory) yield* filesBelow(join(folder, name));
    else if (isFile && !name.endsWith(UNFINISHED)) yield join(folder, name);
  }
}

async function copyFilesOut(source: DatabaseSync, folder: string): Promise<{ files: number; bytes: number }> {
  const names = source.prepare(`SELECT DISTINCT path FROM ${FILE_TABLE} ORDER BY path`).all();
  const parts = source.prepare(`SELECT bytes FROM ${FILE_TABLE} WHERE path = ? AND part = ?`);
  let bytes = 0;
  for (const { path } of names) {
    const name = String(path);
    if (relative(folder, join(folder, name)).startsWith("..")) {
      throw new BackupError(`the backup holds a file outside of its folder: ${name}`);
    }
    await writeWhole(join(folder, name), async (unfinished) => {
      const file = await Deno.open(unfinished, { write: true });
      try {
        for (let number = 0;; number++) {
          const part = parts.get(name, number)?.bytes as Uint8Array | undefined;
          if (part === undefined) break;
          await writeAll(file, part);
          bytes += part.length;
        }
      } finally {
        file.close();
      }
    });
  }
  return { files: names.length, bytes };
}

async function writeAll(file: Deno.FsFile, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) done += await file.write(bytes.subarray(done));
}

function assertBackup(source: DatabaseSync, file: string): void {
  let format: unknown;
  try {
    format = source.prepare(`SELECT format FROM ${FORMAT_TABLE}`).get()?.format;
  } catch {
    throw new BackupError(`${file} is not a backup of Paloma`);
  }
  if (Number(format) > FORMAT) {
    throw new BackupError(`${file} was made by a newer Paloma: restore it with that version`);
  }
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, ignoreMissing) ?? false;
}

async function hasEntries(folder: string): Promise<boolean> {
  return (await Array.fromAsync(Deno.readDir(folder)).catch(ignoreMissing) ?? []).length > 0;
}

function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}
