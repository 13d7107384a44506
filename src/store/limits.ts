/** What one commit may hold. Callers keep to `COMMIT_LIMITS`; an engine that takes more tells the layers above it. */
import type { Change, Kv } from "./kv.ts";
import { keySize, sizeBound } from "./layers/size.ts";

export interface CommitLoad {
  checks: number;
  mutations: number;
  /** Bytes of all keys, of checks too. */
  keyBytes: number;
  /** Bytes of all values, and of the keys that they are written under. */
  bytes: number;
}

/** What every engine takes (the contract of `kv.ts`): some KV servers take no more than ten checks. */
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

/** What the change puts into a commit, never reckoned too low; what it orders is known to its engine alone. */
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

/** Throws RangeError when a caller asks for more in one commit than the contract says; large values are split. */
export function assertFits(change: Change, { mostChecks }: Pick<Kv, "mostChecks">): void {
  const { mutations } = COMMIT_LIMITS;
  if (change.checks.length > mostChecks) throw new RangeError(`a commit takes at most ${mostChecks} checks`);
  if (change.mutations.length > mutations) throw new RangeError(`a commit takes at most ${mutations} mutations`);
}
