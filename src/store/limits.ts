/**
 * Limits of one commit, and fast upper bounds of the space that keys and values take in the engine. Callers keep to
 * `COMMIT_LIMITS`; an engine with higher limits tells the layers above it.
 */
import { Change, type CommitOptions, type Key, type Kv, type Mutation } from "./kv.ts";

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

/** Returns the value of a counter, or an amount. Throws RangeError if it does not fit 64 bits. */
export function signed(value: bigint): bigint {
  if (BigInt.asIntN(64, value) !== value) throw new RangeError("a counter holds a signed 64-bit number");
  return value;
}

interface WriteManyOptions extends CommitOptions {
  /** Limits of each commit; by default those that every engine accepts. */
  limits?: Readonly<CommitLoad>;
  /** Stops the writing between two commits. */
  signal?: AbortSignal;
}

/** Makes any number of mutations in order, in as many commits as they need. Resolves to the number of those made. */
export async function writeMany(
  kv: Pick<Kv, "commit">,
  mutations: Iterable<Mutation> | AsyncIterable<Mutation>,
  { limits = COMMIT_LIMITS, signal, ...options }: WriteManyOptions = {},
): Promise<number> {
  let made = 0;
  let change = new Change();
  let load = loadOf(change);
  async function commit(): Promise<void> {
    if (change.isEmpty) return;
    await kv.commit(change, options);
    made += change.mutations.length;
    change = new Change();
    load = loadOf(change);
  }
  for await (const mutation of mutations) {
    if (signal?.aborted) return made;
    const own = loadOf({ checks: [], mutations: [mutation] });
    // A large value, which is split, is committed alone.
    if (!isWithin(sumOf(load, own), limits)) await commit();
    change.mutations.push(mutation);
    load = sumOf(load, own);
  }
  if (!signal?.aborted) await commit();
  return made;
}

function sumOf(a: CommitLoad, b: CommitLoad): CommitLoad {
  return {
    checks: a.checks + b.checks,
    mutations: a.mutations + b.mutations,
    keyBytes: a.keyBytes + b.keyBytes,
    bytes: a.bytes + b.bytes,
  };
}

/** Values nested deeper are measured by serialising them. */
const DEEPEST = 64;

/** Returns the bytes of the encoded key: a type byte per part, and a terminator per text. */
function keySize(key: Key): number {
  let size = 0;
  for (const part of key) size += typeof part === "string" ? 2 + textSize(part) : 9;
  return size;
}

/** Size as UTF-8, with an escape byte for each zero. */
function textSize(text: string): number {
  let size = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === 0) size += 2;
    else if (unit < 0x80) size += 1;
    else if (unit < 0x800) size += 2;
    else size += 3;
  }
  return size;
}

/**
 * Returns an upper bound of the value's serialised size in bytes. Infinity if only the serialiser can tell: for very
 * deep values, and for views of a larger buffer (the engine would store the whole buffer, pooled secrets included).
 */
export function sizeBound(value: unknown, depth = 0): number {
  switch (typeof value) {
    case "string":
      return 8 + 2 * value.length;
    case "number":
      return 10;
    case "bigint":
      return 10 + value.toString(16).length / 2;
    case "object":
      return value === null ? 1 : depth > DEEPEST ? Infinity : objectBound(value, depth + 1);
    default:
      return 1;
  }
}

function objectBound(value: object, depth: number): number {
  let size = 16;
  if (ArrayBuffer.isView(value)) {
    return value.byteLength === value.buffer.byteLength ? size + value.byteLength : Infinity;
  }
  if (Array.isArray(value) || value instanceof Set) {
    for (const item of value) size += 5 + sizeBound(item, depth);
    return size;
  }
  if (value instanceof Map) {
    for (const [key, item] of value) size += sizeBound(key, depth) + sizeBound(item, depth);
    return size;
  }
  if (value instanceof Date) return size;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return Infinity;
  for (const name in value) size += 8 + 2 * name.length + sizeBound((value as Record<string, unknown>)[name], depth);
  return size;
}
