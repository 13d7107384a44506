/**
 * Prepares the store's file before Deno KV opens it: creates it with its first page, makes it private, narrows its
 * index.
 */
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { exists, giveToOwner, syncFolder } from "../../base/files.ts";
import type { Runtime } from "../../runtime.ts";

/**
 * Creates the file at `path` if there is none. It appears with its first page already in it, because an empty file
 * counts as a damaged store and the process can be killed at any point. SQLite gives its -wal and -shm files the mode
 * of the main file, so one chmod covers all three (promise 6).
 */
export async function makeFile(path: string): Promise<void> {
  const folder = dirname(path);
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  if (!await exists(path)) {
    const made = await Deno.makeTempFile({ dir: folder, prefix: ".new-store-" });
    try {
      await writeFirstPage(made);
      await putInPlace(made, path);
    } finally {
      await Deno.remove(made);
    }
    await giveToOwner(path);
  }
  if (Deno.build.os !== "windows") await Deno.chmod(path, 0o600);
}

/** Takes one flush; SQLite alone takes four to turn an empty file into one with a write-ahead log. */
async function writeFirstPage(path: string): Promise<void> {
  {
    using database = new DatabaseSync(path);
    database.exec("PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL");
  }
  using file = await Deno.open(path, { write: true });
  await file.sync();
}

/** Keeps a file that another process has created in the meantime. The name is on disk before any commit (promise 1). */
async function putInPlace(made: string, path: string): Promise<void> {
  try {
    await Deno.link(made, path);
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) await makeEmpty(path);
    return;
  }
  await syncFolder(dirname(path));
}

/** Fallback for file systems without hard links: SQLite writes the first page later. */
async function makeEmpty(path: string): Promise<void> {
  try {
    (await Deno.open(path, { createNew: true, write: true, mode: 0o600 })).close();
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
}

const INDEX = "kv_expiration_ms_idx";
/** Exactly the term in Deno KV's own query, so that SQLite uses the index for it. */
const ROWS_THAT_EXPIRE = "expiration_ms >= 0";

/**
 * Limits the expiry index to rows that expire, which almost none does (docs/decisions/0022-index-of-what-expires.md).
 * Done once in a file's life; takes two seconds per gigabyte. Open connections are not affected. If it fails, because
 * another process holds the file or the disk is full, the file is opened as it is.
 */
export function narrowExpiryIndex(path: string, { log }: Pick<Runtime, "log">): void {
  try {
    using database = new DatabaseSync(path);
    const index = database.prepare("SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?").get(INDEX);
    if (!index || / where /i.test(String(index.sql))) return;
    database.exec(
      // No flush of its own: the next commit's flush covers it, and after a crash the next start repeats it.
      `PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE; DROP INDEX ${INDEX};` +
        `CREATE INDEX ${INDEX} ON kv (expiration_ms) WHERE ${ROWS_THAT_EXPIRE}; COMMIT`,
    );
  } catch (error) {
    log.info({ error: String(error) }, "the store's index could not be narrowed: the next start tries again");
  }
}
