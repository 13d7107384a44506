/**
 * The port to storage: an ordered map of keys to structured-clonable values with atomic, checked commits.
 *
 * Contract, kept by every engine and proved by `tests/contract/kv_test.ts`:
 * - Keys sort part by part: bytes < strings < bigints < numbers < booleans (Deno KV's order). A key is at most 2 KiB.
 * - A value may have any size: engines split what is over their own limit, atomically with the rest of the commit.
 * - A commit is durable when its promise resolves to a version: that of every row it has set. It resolves to null, and
 *   nothing was written, when a check failed. It rejects with `StoreError` when the engine could not do it; whether it
 *   was written is then unknown only for `code: "unavailable"`.
 * - One commit holds at most what `COMMIT_LIMITS` says, and `mostChecks` checks; large values aside, which are split. More,
 *   or a value that cannot be cloned, is the caller's mistake: a TypeError or RangeError, and nothing was written.
 * - Checks compare versions: a slot's `version` changes with every write of that key; `null` means "absent".
 * - Counters are signed 64-bit, start at 0, and `add` never conflicts. They read back as `bigint`.
 * - Two instances on the same data see each other's commits at once.
 * - A read and a commit that are under way together may answer in either order, whichever was asked for first.
 * - Nothing expires by itself: `maintenance.ts` sweeps.
 */

export type KeyPart = Uint8Array | string | number | bigint | boolean;
export type Key = readonly KeyPart[];

declare const valueType: unique symbol;
/** A key that knows what is stored under it. Made by the `rows.ts` of each room only. */
export type KeyOf<T> = Key & { readonly [valueType]?: T };
/** The beginning of a family of keys that all hold a `T`. */
export type PrefixOf<T> = Key & { readonly [valueType]?: T };

export function key<T>(...parts: Key): KeyOf<T> {
  return parts;
}

export function prefix<T>(...parts: Key): PrefixOf<T> {
  return parts;
}

/** A text that is the same for the same key only, for maps and sets that look keys up. */
export function nameOfKey(key: Key): string {
  let name = "";
  for (const part of key) name += nameOfPart(part);
  return name;
}

function nameOfPart(part: KeyPart): string {
  if (typeof part === "string") return `s${part.length}:${part}`;
  return part instanceof Uint8Array ? `b${part.join(",")};` : `${typeof part}${part};`;
}

/** What stands at a key: the value and its version, or two nulls. */
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

/** Whether something stands at the key. */
export function isRow<T>(slot: Slot<T>): slot is Row<T> {
  return slot.version !== null;
}

/** A stretch of keys below `prefix`: `start` included, `end` excluded; both are full keys. */
export interface Range<T> {
  prefix: PrefixOf<T>;
  start?: Key;
  end?: Key;
}

export interface ListOptions {
  limit?: number;
  reverse?: boolean;
}

/** What nobody waits for is held back this long: a line or webhook that is busy writes within it. */
export const LINGER_MS = 20;

export interface CommitOptions {
  /** For what nobody waits for: until this resolves the commit may be held back, for another's flush to share. */
  lingerUntil?: Promise<unknown>;
  /** Of work that can wait: an engine may let such commits rest while others write. */
  background?: boolean;
}

/** Its methods stand for themselves, without `this`: a layer is the store below it with some of them replaced. */
export interface Kv {
  /** How many checks one commit takes: at least those of `COMMIT_LIMITS`. */
  readonly mostChecks: number;
  get<T>(key: KeyOf<T>): Promise<Slot<T>>;
  /** Any number of keys; the engine splits the call as it must. Slots in the order of the keys. */
  getMany<T>(keys: readonly KeyOf<T>[]): Promise<Slot<T>[]>;
  list<T>(range: Range<T>, options?: ListOptions): AsyncIterable<Row<T>>;
  /** The version of what was written, or null when a check failed. Throws StoreError. */
  commit(change: Change, options?: CommitOptions): Promise<string | null>;
  close(): void;
}

export type Mutation =
  /** `bytes`: at most so many of the value, where that was reckoned before. */
  | { kind: "set"; key: Key; value: unknown; bytes?: number }
  | { kind: "delete"; key: Key }
  | { kind: "add"; key: Key; amount: bigint };

/**
 * Builds mutations that depend on the commit's place in a sequence; `order` sorts after all that were given before.
 * `follows` tells of an earlier order whether it is the last one before this.
 */
type OrderedBuild = (order: string, follows: (earlier: string) => boolean) => readonly Mutation[];

/**
 * A change as a value: parts of the product each add what is theirs, then one commit writes it all or nothing.
 */
export class Change {
  readonly checks: { key: Key; version: string | null }[] = [];
  readonly mutations: Mutation[] = [];
  readonly orderedBuilds: { sequence: KeyOf<number>; build: OrderedBuild }[] = [];

  /** Whether there is nothing to write, and nothing to check. */
  get isEmpty(): boolean {
    return this.mutations.length + this.orderedBuilds.length + this.checks.length === 0;
  }

  /** Commit only if the slot is still as it was read. */
  check(slot: Pick<Slot<unknown>, "key" | "version">): this {
    this.checks.push({ key: slot.key, version: slot.version });
    return this;
  }

  /** Commit only if nothing stands at the key. */
  checkAbsent(key: Key): this {
    this.checks.push({ key, version: null });
    return this;
  }

  /** Adds all that another change does. */
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
   * Adds mutations whose keys carry the commit's place in the sequence that stands at the key `sequence`: a reader who
   * has seen order X of it never later finds a new row before X, which is what cursors need. No order is given twice,
   * in any sequence. `build` is pure: it may be called again. The sequence's row counts as a check and a mutation.
   */
  ordered(sequence: KeyOf<number>, build: OrderedBuild): this {
    this.orderedBuilds.push({ sequence, build });
    return this;
  }
}

/** The engine could not do it. `locked`: another process holds the file; `full`: no space; else `unavailable`. */
export class StoreError extends Error {
  readonly code: "locked" | "full" | "unavailable";

  constructor(code: StoreError["code"], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StoreError";
    this.code = code;
  }
}

/** The first row of the range, or the last one; null when there is none. */
export async function firstRow<T>(
  kv: Pick<Kv, "list">,
  range: Range<T>,
  options: Pick<ListOptions, "reverse"> = {},
): Promise<Row<T> | null> {
  for await (const row of kv.list(range, { ...options, limit: 1 })) return row;
  return null;
}

/**
 * The next rows of a long family, from a key on (null: from the first), and where those behind them begin; null at the end.
 * The row there is read once more, or has gone.
 */
export async function stretchOf<T>(
  kv: Pick<Kv, "list">,
  prefix: PrefixOf<T>,
  { from, limit }: { from: Key | null; limit: number },
): Promise<{ rows: Row<T>[]; next: Key | null }> {
  const rows = await Array.fromAsync(kv.list({ prefix, ...(from ? { start: from } : {}) }, { limit }));
  return { rows, next: rows.length === limit ? rows.at(-1)!.key : null };
}

/**
 * Reads, builds a change, commits; again from the start when a check failed. An empty change is not committed. Throws
 * StoreError after `tries`.
 */
export async function retryOnConflict<T>(
  kv: Kv,
  build: () => Promise<{ change: Change; result: T } & CommitOptions>,
  tries = 20,
): Promise<T> {
  for (let attempt = 0; attempt < tries; attempt++) {
    const { change, result, ...options } = await build();
    if (change.isEmpty || await kv.commit(change, options)) return result;
  }
  throw new StoreError("unavailable", `gave up after ${tries} conflicting commits`);
}
