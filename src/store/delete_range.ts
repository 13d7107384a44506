/** Deletes many rows in commits small enough to let other writers in between. */
import { batchesOf } from "../base/batches.ts";
import { Change, type Key, type Kv, type Mutation, type Range, type Row } from "./kv.ts";
import { COMMIT_LIMITS, writeMany } from "./limits.ts";

/** Five hundred rows a commit take a few milliseconds of disk time. */
const LIMITS = { ...COMMIT_LIMITS, mutations: 500 };

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
  options?: DeleteOptions,
): Promise<number> {
  return await writeMany(kv, deletionsOf(keys), { ...options, limits: LIMITS, background: true });
}

/**
 * Deletes the rows that have not changed since they were read, and resolves to the count. If one of them has, those that
 * share its commit stay too, for the next call. Throws StoreError.
 */
export async function deleteUnchanged(
  kv: Kv,
  rows: AsyncIterable<Row<unknown>>,
  { signal }: DeleteOptions = {},
): Promise<number> {
  let removed = 0;
  for await (const some of batchesOf(rows, kv.mostChecks)) {
    if (signal?.aborted) break;
    const change = new Change();
    for (const row of some) change.check(row).delete(row.key);
    if (await kv.commit(change, { background: true }) !== null) removed += some.length;
  }
  return removed;
}

async function* deletionsOf(keys: Iterable<Key> | AsyncIterable<Key>): AsyncGenerator<Mutation> {
  for await (const key of keys) yield { kind: "delete", key };
}

async function* keysIn(kv: Kv, range: Range<unknown>): AsyncGenerator<Key> {
  for await (const { key } of kv.list(range)) yield key;
}
