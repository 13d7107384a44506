/**
 * Deno KV indexes when each row expires, and with it every row that never does: a second entry, on another page, for each
 * row that is written. Nothing expires by itself here, so the index is made to hold only rows that do
 * (docs/decisions/0022-index-of-what-expires.md).
 */
import { DatabaseSync } from "node:sqlite";
import type { Runtime } from "../../runtime.ts";

const INDEX = "kv_expiration_ms_idx";
/** Deno KV asks with this very term, so that SQLite takes the index for it. */
const ROWS_THAT_EXPIRE = "expiration_ms >= 0";

/**
 * Narrows the index of the store at `path`, once in a file's life: two seconds for a gigabyte. Connections that are open
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
