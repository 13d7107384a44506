/**
 * An archive as a SQLite file: the store's tables as they are, and the files, in parts, in a table of their own. The
 * store is copied within one read transaction, which blocks no writer (WAL).
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { unlessMalformed } from "../../base/retry.ts";
import { ARCHIVE_FORMAT, type ArchiveReader, type ArchiveWriter } from "../file_engine.ts";
import { StoreError } from "../kv.ts";

const FORMAT_TABLE = "paloma_backup";
const FILE_TABLE = "paloma_file";

export function createArchive(path: string): ArchiveWriter {
  const database = openTarget(path);
  database.exec(`CREATE TABLE ${FORMAT_TABLE} (format INTEGER NOT NULL)`);
  database.exec(`INSERT INTO ${FORMAT_TABLE} VALUES (${ARCHIVE_FORMAT})`);
  database.exec(`CREATE TABLE ${FILE_TABLE} (path TEXT, part INTEGER, bytes BLOB, PRIMARY KEY (path, part))`);
  const insert = database.prepare(`INSERT INTO ${FILE_TABLE} VALUES (?, ?, ?)`);
  return {
    addStore(store) {
      using source = new DatabaseSync(store, { readOnly: true });
      return copyTables(database, source);
    },
    async addFile(name, parts) {
      let number = 0;
      let size = 0;
      for await (const part of parts) {
        insert.run(name, number++, part);
        size += part.length;
      }
      // An empty file is stored as one empty part.
      if (number === 0) insert.run(name, 0, new Uint8Array());
      return size;
    },
    finish: () => database.exec("COMMIT"),
    [Symbol.dispose]: () => database.close(),
  };
}

export function openArchive(path: string): ArchiveReader {
  const database = new DatabaseSync(path, { readOnly: true });
  return {
    format: () => formatOf(database),
    files() {
      const names = database.prepare(`SELECT DISTINCT path FROM ${FILE_TABLE} ORDER BY path`);
      return reading(path, () => names.all()).map((row) => String(row.path));
    },
    *readFile(name) {
      const read = database.prepare(`SELECT bytes FROM ${FILE_TABLE} WHERE path = ? AND part = ?`);
      for (let number = 0;; number++) {
        const row = reading(path, () => read.get(name, number));
        if (row === undefined) return;
        if (row.bytes instanceof Uint8Array) yield row.bytes;
      }
    },
    writeStore(store) {
      using target = openTarget(store);
      const rows = reading(path, () => copyTables(target, database));
      target.exec("COMMIT");
      return rows;
    },
    [Symbol.dispose]: () => database.close(),
  };
}

/** Throws StoreError where the archive is damaged. */
function reading<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Error) || !/malformed|not a database/.test(error.message)) throw error;
    throw new StoreError("unavailable", `${path} is damaged (${error.message})`, { cause: error });
  }
}

function formatOf(database: DatabaseSync): number | null {
  return unlessMalformed(() => Number(database.prepare(`SELECT format FROM ${FORMAT_TABLE}`).get()?.format), null);
}

/** Opens a database in one long transaction, without a journal: an archive that is interrupted is discarded. */
function openTarget(path: string): DatabaseSync {
  const target = new DatabaseSync(path);
  // A process that exits meanwhile would leave a journal on disk. OFF is refused: Deno opens databases as defensive.
  target.exec("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN");
  return target;
}

/**
 * Copies a snapshot of every table and index of a store; returns the number of rows. It copies row by row, because ATTACH
 * needs permissions that the executable does not have.
 */
function copyTables(target: DatabaseSync, source: DatabaseSync): number {
  source.exec("BEGIN");
  const schema = source.prepare(
    "SELECT type, name, sql FROM sqlite_master " +
      "WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND tbl_name NOT IN (?, ?)",
  ).all(FORMAT_TABLE, FILE_TABLE).map(({ type, name, sql }) => ({ type, name: String(name), sql: String(sql) }));
  let rows = 0;
  for (const { name, sql } of schema.filter(({ type }) => type === "table")) {
    target.exec(sql);
    rows += copyRows(source, target, name);
  }
  for (const { sql } of schema.filter(({ type }) => type !== "table")) target.exec(sql);
  source.exec("COMMIT");
  return rows;
}

function copyRows(source: DatabaseSync, target: DatabaseSync, table: string): number {
  const read = source.prepare(`SELECT * FROM "${table}"`);
  read.setReadBigInts(true);
  let insert: StatementSync | null = null;
  let rows = 0;
  for (const row of read.iterate()) {
    const values = Object.values(row);
    insert ??= target.prepare(`INSERT INTO "${table}" VALUES (${values.map(() => "?").join(", ")})`);
    insert.run(...values);
    rows++;
  }
  return rows;
}
