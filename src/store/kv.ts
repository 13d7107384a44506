/**
 * The port to storage: an ordered map of keys to structured-clonable values with atomic, checked commits.
 *
 * Contract, kept by every engine and proved by `tests/contract/kv_test.ts`:
 * - Keys sort part by part: strings < numbers (Deno KV's order). A key is at most 2 KiB.
 * - A value may have any size: engines split values above their own limit, atomically with the rest of the commit.
 * - A commit is durable when its promise resolves to a version, which every row that it set then has. It resolves to
 *   null, with nothing written, when a check failed. It rejects with `StoreError` when the engine failed; only for
 *   `code: "unavailable"` is it then unknown whether it was written.
 * - A commit holds at most what `COMMIT_LIMITS` says, and `mostChecks` checks; large values, which are split, do not
 *   count. Exceeding that, or a value that cannot be cloned, is the caller's mistake: TypeError or RangeError, nothing
 *   written.
 * - Checks compare versions: a slot's `version` changes with every write of that key; `null` means "absent".
 * - Counters are signed 64-bit, start at 0, and `add` never conflicts. They read back as `bigint`.
 * - Two instances on the same data see each other's commits at once.
 * - A concurrent read and commit may finish in either order, whichever was started first.
 * - Nothing expires by itself: `maintenance.ts` sweeps.
 */
import { retry, type RetryOptions } from "../base/retry.ts";

export type KeyPart = string | number;
export type Key = readonly KeyPart[];

declare const valueType: unique symbol;
/** A key that carries the type of its value. Made only by each room's `rows.ts`. */
export type KeyOf<T> = Key & { readonly [valueType]?: T };
/** The prefix of a family of keys whose values are all `T`. */
export type PrefixOf<T> = Key & { readonly [valueType]?: T };

export function key<T>(...parts: Key): KeyOf<T> {
  return parts;
}

export function prefix<T>(...parts: Key): PrefixOf<T> {
  return parts;
}

/** Returns a string unique to the key, for use in maps and sets. */
export function nameOfKey(key: Key): string {
  let name = "";
  for (const part of key) name += typeof part === "string" ? `s${part.length}:${part}` : `n${part};`;
  return name;
}

/** What is stored at a key: the value and its version, or two nulls. */
export interface Slot<T> {
  readonly key: Key;
  readonly value: T | null;
  readonly version: string | null;
}

/** A row that exists. */
export interface Row<T> extends Slot<T> {
  readonly value: T;
  readonly version: string;
}

/** Whether the key has a value. */
export function isRow<T>(slot: Slot<T>): slot is Row<T> {
  return slot.version !== null;
}

/** A range of keys below `prefix`, from `start` (inclusive) to `end` (exclusive); both are full keys. */
export interface Range<T> {
  prefix: PrefixOf<T>;
  start?: Key;
  end?: Key;
}

export interface ListOptions {
  limit?: number;
  reverse?: boolean;
}

/** How long a commit that nobody awaits may linger: a busy line or webhook writes within this time. */
export const LINGER_MS = 20;

export interface CommitOptions {
  /** For a commit that nobody awaits: it may be held back until this resolves, to share another commit's flush. */
  lingerUntil?: Promise<unknown>;
  /** For work that can wait: an engine may delay such commits while others write. */
  background?: boolean;
}

/** The methods do not use `this`: a layer is the store below it with some methods replaced. */
export interface Kv {
  /** The most checks in one commit: at least as many as `COMMIT_LIMITS` allows. */
  readonly mostChecks: number;
  get<T>(key: KeyOf<T>): Promise<Slot<T>>;
  /**
   * Reads any number of keys, in several calls if the engine needs that. Returns the slots in the order of the keys.
   */
  getMany<T>(keys: readonly KeyOf<T>[]): Promise<Slot<T>[]>;
  list<T>(range: Range<T>, options?: ListOptions): AsyncIterable<Row<T>>;
  /** Resolves to the version written, or null if a check failed. Throws StoreError. */
  commit(change: Change, options?: CommitOptions): Promise<string | null>;
  close(): void;
}

export type Mutation =
  /** `bytes`: an upper bound of the value's size, if it was computed before. */
  | { kind: "set"; key: Key; value: unknown; bytes?: number }
  | { kind: "delete"; key: Key }
  | { kind: "add"; key: Key; amount: bigint };

/**
 * Builds mutations that depend on the commit's place in a sequence; `order` sorts after every order given out before.
 * `follows` says whether an earlier order is the direct predecessor of this one.
 */
type OrderedBuild = (order: string, follows: (earlier: string) => boolean) => readonly Mutation[];

/**
 * A change as a value: different parts of the product add to it, then one commit writes all of it or nothing.
 */
export class Change {
  readonly checks: { key: Key; version: string | null }[] = [];
  readonly mutations: Mutation[] = [];
  readonly orderedBuilds: { sequence: KeyOf<number>; build: OrderedBuild }[] = [];

  /** Whether there is nothing to write and nothing to check. */
  get isEmpty(): boolean {
    return this.mutations.length + this.orderedBuilds.length + this.checks.length === 0;
  }

  /** Commits only if the slot is unchanged since it was read. */
  check(slot: Pick<Slot<unknown>, "key" | "version">): this {
    this.checks.push({ key: slot.key, version: slot.version });
    return this;
  }

  /** Commits only if the key has no value. */
  checkAbsent(key: Key): this {
    this.checks.push({ key, version: null });
    return this;
  }

  /** Adds everything in another change. */
  include({ checks, mutations, orderedBuilds }: Pick<Change, "checks" | "mutations" | "orderedBuilds">): this {
    this.checks.push(...checks);
    this.mutations.push(...mutations);
    this.orderedBuilds.push(...orderedBuilds);
    return this;
  }

  set<T>(key: KeyOf<T>, value: T): this {
    this.mutations.push({ kind: "set", key, value });
    return this;
  }

  delete(key: Key): this {
    this.mutations.push({ kind: "delete", key });
    return this;
  }

  /** Adds to a counter; the amount may be negative. */
  add(key: KeyOf<bigint>, amount: number | bigint): this {
    this.mutations.push({ kind: "add", key, amount: BigInt(amount) });
    return this;
  }

  /**
   * Adds mutations whose keys carry the commit's place in the sequence stored at the key `sequence`. A reader that has
   * seen order X never later finds a new row before X, which is what cursors rely on. No order is given out twice, in
   * any sequence. `build` must be pure: it may be called again. The sequence's row counts as one check and one
   * mutation.
   */
  ordered(sequence: KeyOf<number>, build: OrderedBuild): this {
    this.orderedBuilds.push({ sequence, build });
    return this;
  }
}

/** The engine failed. `locked`: another process holds the file; `full`: no space left; otherwise `unavailable`. */
export class StoreError extends Error {
  override name = "StoreError";

  constructor(readonly code: "locked" | "full" | "unavailable", message: string, options?: ErrorOptions) {
    super(message, options);
  }
}

/** The server of a shared store does not answer, or is starting or stopping: it may be back in a moment. */
export class StoreAway extends StoreError {
  constructor(message: string, options?: ErrorOptions) {
    super("unavailable", message, options);
  }
}

/** Returns the first row of the range, or the last one; null if the range is empty. */
export async function firstRow<T>(
  kv: Pick<Kv, "list">,
  range: Range<T>,
  options: Pick<ListOptions, "reverse"> = {},
): Promise<Row<T> | null> {
  for await (const row of kv.list(range, { ...options, limit: 1 })) return row;
  return null;
}

/**
 * Reads the next rows of a long family, from a key on (null: from the first), and the key from which to continue; null
 * at the end. The row at that key is read again next time, unless it was deleted.
 */
export async function stretchOf<T>(
  kv: Pick<Kv, "list">,
  prefix: PrefixOf<T>,
  { from, limit }: { from: Key | null; limit: number },
): Promise<{ rows: Row<T>[]; next: Key | null }> {
  const rows = await Array.fromAsync(kv.list({ prefix, ...(from ? { start: from } : {}) }, { limit }));
  return { rows, next: rows.length === limit ? rows.at(-1)!.key : null };
}

/** How often work is tried that conflicts with commits of others: each failure means that one of theirs was written. */
const MOST_TRIES = 100;

/**
 * Tries until the result is not undefined, which says that what was read has changed meanwhile; `tried` counts the
 * failures so far. Throws StoreError when it gives up.
 */
export async function untilCurrent<T>(attempt: (tried: number) => Promise<T | undefined>): Promise<T> {
  for (let tried = 0; tried < MOST_TRIES; tried++) {
    const result = await attempt(tried);
    if (result !== undefined) return result;
  }
  throw new StoreError("unavailable", `gave up after ${MOST_TRIES} conflicting commits`);
}

/**
 * Reads, builds a change and commits it; starts over when a check failed. An empty change is not committed. Throws
 * StoreError when it gives up.
 */
export async function retryOnConflict<T>(
  kv: Kv,
  build: () => Promise<{ change: Change; result: T } & CommitOptions>,
): Promise<T> {
  const { result } = await untilCurrent(async () => {
    const { change, result, ...options } = await build();
    return change.isEmpty || await kv.commit(change, options) ? { result } : undefined;
  });
  return result;
}

/** A full disk or a locked file may last a while; one attempt a second costs next to nothing. */
export const STORE_PAUSE_MS = 1_000;

/**
 * Retries `work` until the store accepts it, so that nothing that happened is lost (promise 4). Rejects at once with
 * any other error, and with the last StoreError when the signal aborts. `onRetry` is called with each failure that is
 * followed by another attempt.
 */
export async function untilStored<T>(
  work: () => Promise<T>,
  options: Pick<RetryOptions, "clock" | "signal" | "onRetry">,
): Promise<T> {
  return await retry(work, {
    ...options,
    pauseMs: STORE_PAUSE_MS,
    isTransient: (error) => error instanceof StoreError,
  });
}
