/** Maps errors of the SQLite engine to the port's `StoreError`, by the messages of SQLite and the kernel. */
import { StoreError } from "../kv.ts";

/** SQLITE_BUSY and SQLITE_LOCKED. */
const LOCKED = /database (table )?is locked/i;
/** SQLITE_FULL, ENOSPC, EDQUOT. */
const FULL = /database or disk is full|no space left|quota exceeded/i;
/**
 * A commit or a key that no engine accepts: the caller's mistake. Deno throws TypeErrors for these and for failures.
 */
const MISTAKE =
  /too large|too many|cannot be empty|could not be cloned|non-U64|keyspace|greater than end key|expected string/i;

/** V8's serialisation format evolves: an older runtime cannot read what a newer one wrote. */
const TOO_NEW = /could not deserialize/i;

/**
 * Returns a `StoreError` for a failure of the engine; a caller's mistake (TypeError, RangeError) is returned as it is.
 */
export function storeError(error: unknown): unknown {
  if (error instanceof StoreError) return error;
  const text = error instanceof Error ? error.message : String(error);
  if (TOO_NEW.test(text)) {
    return new StoreError("unavailable", "a newer build of Paloma wrote this data: use that one", { cause: error });
  }
  if (error instanceof RangeError) return error;
  if (LOCKED.test(text)) {
    return new StoreError("locked", "another process holds the store's file locked", { cause: error });
  }
  if (FULL.test(text)) return new StoreError("full", "there is no space left for the store", { cause: error });
  if (error instanceof TypeError && MISTAKE.test(text)) return error;
  return new StoreError("unavailable", `the store cannot be used: ${text}`, { cause: error });
}
