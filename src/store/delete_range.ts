/** Deletes many rows in commits small enough to let other writers in between. */
import type { Key, Kv, Mutation, Range } from "./kv.ts";
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

async function* deletionsOf(keys: Iterable<Key> | AsyncIterable<Key>): AsyncGenerator<Mutation> {
  for await (const key of keys) yield { kind: "delete", key };
}

async function* keysIn(kv: Kv, range: Range<unknown>): AsyncGenerator<Key> {
  for await (const { key } of kv.list(range)) yield key;
}
