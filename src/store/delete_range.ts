/** Deletes many rows in commits small enough to let other writers in between. */
import { Change, type Key, type Kv, type Range } from "./kv.ts";
import { COMMIT_LIMITS, keySize } from "./limits.ts";

/** Rows deleted by one commit, unless their keys are long: a few milliseconds of disk time. */
const ROWS_A_COMMIT = 500;

interface DeleteOptions {
  /** Stops the deletion between two commits. */
  signal?: AbortSignal;
}

/**
 * Deletes every row of the range in order and resolves to the count. Safe to restart after an interruption. Throws
 * StoreError.
 */
export async function deleteRange(kv: Kv, range: Range<unknown>, options?: DeleteOptions): Promise<number> {
  return await deleteKeys(kv, keysIn(kv, range), options);
}

/** As `deleteRange`, for any sequence of keys, in the order given. */
export async function deleteKeys(
  kv: Kv,
  keys: Iterable<Key> | AsyncIterable<Key>,
  { signal }: DeleteOptions = {},
): Promise<number> {
  let deleted = 0;
  let change = new Change();
  let keyBytes = 0;
  async function commit(): Promise<void> {
    if (change.mutations.length === 0) return;
    await kv.commit(change, { background: true });
    deleted += change.mutations.length;
    change = new Change();
    keyBytes = 0;
  }
  for await (const key of keys) {
    if (signal?.aborted) return deleted;
    const size = keySize(key);
    if (change.mutations.length === ROWS_A_COMMIT || keyBytes + size > COMMIT_LIMITS.keyBytes) await commit();
    change.delete(key);
    keyBytes += size;
  }
  if (!signal?.aborted) await commit();
  return deleted;
}

async function* keysIn(kv: Kv, range: Range<unknown>): AsyncGenerator<Key> {
  for await (const { key } of kv.list(range)) yield key;
}
