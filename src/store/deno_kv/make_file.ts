/** The store's file before Deno KV opens it: there, with its first page, its owner's alone, its index made small. */
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { exists, giveToOwner, syncFolder } from "../../base/files.ts";
import type { Runtime } from "../../runtime.ts";

/**
 * Makes the file at `path` where there is none. It appears with its first page in it: an empty one is taken for a damaged
 * store, and a process can be killed at any point. SQLite gives its -wal and -shm files the mode of the main file, so
 * that one chmod covers the three (promise 6).
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

/** One flush, where SQLite would do four when it turns an empty file into one with a write-ahead log. */
async function writeFirstPage(path: string): Promise<void> {
  {
    using database = new DatabaseSync(path);
    database.exec("PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL");
  }
  using file = await Deno.open(path, { write: true });
  await file.sync();
}

/** Leaves the file alone that another process has put there meanwhile. Its name is on disk before a commit is (promise 1). */
async function putInPlace(made: string, path: string): Promise<void> {
  try {
    await Deno.link(made, path);
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) await makeEmpty(path);
    return;
  }
  await syncFolder(dirname(path));
}

/** On a disk without hard links: SQLite writes the first page. */
async function makeEmpty(path: string): Promise<void> {
  try {
    (await Deno.open(path, { createNew: true, write: true, mode: 0o600 })).close();
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
}

const INDEX = "kv_expiration_ms_idx";
/** Deno KV asks with this very term, so that SQLite takes the index for it. */
const ROWS_THAT_EXPIRE = "expiration_ms >= 0";

/**
 * Narrows the index of when rows expire, which nearly none does (docs/decisions/0022-index-of-what-expires.md): once in
 * a file's life, two seconds for a gigabyte. Connections that are open
 * go on. Where it fails, the file opens as it is: another process has it for the moment, or the disk is full.
 */
export function narrowExpiryIndex(path: string, { log }: Pick<Runtime, "log">): void {
  try {
    using database = new DatabaseSync(path);
    const index = database.prepare("SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?").get(INDEX);
    if (!index || / where /i.test(String(index.sql))) return;
    database.exec(
      // Nobody is promised this commit: the next one's flush covers it, and what a crash takes, the next start does again.
      `PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE; DROP INDEX ${INDEX};` +
        `CREATE INDEX ${INDEX} ON kv (expiration_ms) WHERE ${ROWS_THAT_EXPIRE}; COMMIT`,
    );
  } catch (error) {
    log.info({ error: String(error) }, "the store's index could not be narrowed: the next start tries again");
  }
}
