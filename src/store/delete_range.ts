/** Deleting many rows in commits that are small enough to let others write in between. */
import { Change, type Key, type Kv, type Range } from "./kv.ts";
import { COMMIT_LIMITS } from "./limits.ts";
import { keySize } from "./layers/size.ts";

/** Rows that one commit deletes, if their keys are not long: some milliseconds of the disk. */
const ROWS_A_COMMIT = 500;

interface DeleteOptions {
  /** Ends it between two commits. */
  signal?: AbortSignal;
}

/** Deletes every row of the range, in order; resolves to how many. Cut short, it can begin again. Throws StoreError. */
export async function deleteRange(kv: Kv, range: Range<unknown>, options?: DeleteOptions): Promise<number> {
  return await deleteKeys(kv, keysIn(kv, range), options);
}

/** As `deleteRange`, for rows that are chosen otherwise: deletes them in the order in which they come. */
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
