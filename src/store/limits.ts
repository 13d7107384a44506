/** Limits of one commit. Callers keep to `COMMIT_LIMITS`; an engine with higher limits tells the layers above it. */
import type { Change, Kv } from "./kv.ts";
import { keySize, sizeBound } from "./layers/size.ts";

export interface CommitLoad {
  checks: number;
  mutations: number;
  /** Bytes of all keys, those of checks included. */
  keyBytes: number;
  /** Bytes of all values and of their keys. */
  bytes: number;
}

/** What every engine accepts (the contract of `kv.ts`). Some KV servers accept no more than ten checks. */
export const COMMIT_LIMITS: Readonly<CommitLoad> = {
  checks: 10,
  mutations: 900,
  keyBytes: 76 * 1024,
  bytes: 700 * 1024,
};

/** A counter's amount, or a deletion. */
const SMALL_BYTES = 16;

export function isWithin(load: CommitLoad, limits: Readonly<CommitLoad>): boolean {
  return load.checks <= limits.checks && load.mutations <= limits.mutations && load.keyBytes <= limits.keyBytes &&
    load.bytes <= limits.bytes;
}

/**
 * Returns an upper bound of what the change puts into a commit, without ordered builds, which only the engine knows.
 */
export function loadOf({ checks, mutations }: Pick<Change, "checks" | "mutations">): CommitLoad {
  const load = { checks: checks.length, mutations: mutations.length, keyBytes: 0, bytes: 0 };
  for (const { key } of checks) load.keyBytes += keySize(key);
  for (const mutation of mutations) {
    const keyBytes = keySize(mutation.key);
    load.keyBytes += keyBytes;
    load.bytes += keyBytes + (mutation.kind === "set" ? mutation.bytes ?? sizeBound(mutation.value) : SMALL_BYTES);
  }
  return load;
}

/**
 * Throws RangeError if the change exceeds the contract's limits of one commit. Large values are split and do not count.
 */
export function assertFits(change: Change, { mostChecks }: Pick<Kv, "mostChecks">): void {
  const { mutations } = COMMIT_LIMITS;
  if (change.checks.length > mostChecks) throw new RangeError(`a commit takes at most ${mostChecks} checks`);
  if (change.mutations.length > mutations) throw new RangeError(`a commit takes at most ${mutations} mutations`);
}
