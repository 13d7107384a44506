/**
 * The port `Kv` in memory, for tests of what stands above it: settles without timers, so that a manual clock decides
 * all time, and breaks down when told, so that a test can stop the product between any two commits.
 */
import {
  type Change,
  type Key,
  type KeyPart,
  type Kv,
  type ListOptions,
  type Range,
  type Row,
  type Slot,
  StoreError,
} from "../../src/store/kv.ts";
import { COMMIT_LIMITS } from "../../src/store/limits.ts";

type Stored = { key: Key; value: unknown; version: string };

/** What outlives a crash: give it to the next `MemoryKv`. */
export class MemoryDisk {
  readonly rows = new Map<string, Stored>();
  commits = 0;
  orders = 0;
  /** The keys of each family, in their order. */
  readonly #families = new Map<KeyPart, Key[]>();

  set(id: string, row: Stored): void {
    const keys = this.#family(row.key);
    if (!this.rows.has(id)) keys.splice(placeOf(keys, row.key), 0, row.key);
    this.rows.set(id, row);
  }

  delete(id: string): void {
    const row = this.rows.get(id);
    if (!row) return;
    this.rows.delete(id);
    const keys = this.#family(row.key);
    keys.splice(placeOf(keys, row.key), 1);
  }

  /** The rows below the prefix, in order; the first so many. */
  below({ prefix, start, end }: Range<unknown>, most = Infinity): Stored[] {
    const found: Stored[] = [];
    const keys = prefix.length === 0 ? [...this.#families.values()].flat().sort(compareKeys) : this.#family(prefix);
    for (let at = placeOf(keys, start ?? prefix); at < keys.length && found.length < most; at++) {
      const key = keys[at]!;
      if (end && compareKeys(key, end) >= 0 || !prefix.every((part, i) => compareParts(part, key[i]!) === 0)) break;
      if (key.length > prefix.length) found.push(this.rows.get(idOf(key))!);
    }
    return found;
  }

  /** The function brings back the rows as they are now, as a standby does that lagged behind; no version comes twice. */
  remember(): () => void {
    const before = [...this.rows];
    return () => {
      for (const id of [...this.rows.keys()]) this.delete(id);
      for (const [id, row] of before) this.set(id, row);
    };
  }

  #family([name]: Key): Key[] {
    const keys = this.#families.get(name!) ?? [];
    this.#families.set(name!, keys);
    return keys;
  }
}

export class MemoryKv implements Kv {
  mostChecks = COMMIT_LIMITS.checks;
  readonly disk: MemoryDisk;
  /** After so many more commits nothing works any more, as after a crash; the last one is written. */
  commitsLeft = Infinity;
  /** Called after each commit that was written. */
  committed: (change: Change) => void = () => {};
  /** While set, every call rejects with it. */
  trouble: StoreError | null = null;

  constructor(disk = new MemoryDisk()) {
    this.disk = disk;
  }

  get = <T>(key: Key): Promise<Slot<T>> => this.#run(() => this.#slot<T>(key));

  getMany = <T>(keys: readonly Key[]): Promise<Slot<T>[]> => this.#run(() => keys.map((key) => this.#slot<T>(key)));

  list = <T>(range: Range<T>, options?: ListOptions): AsyncIterable<Row<T>> => this.#list(range, options);

  async *#list<T>(range: Range<T>, { reverse, limit }: ListOptions = {}): AsyncIterable<Row<T>> {
    const rows = await this.#run(() => this.disk.below(range, reverse ? Infinity : limit));
    if (reverse) rows.reverse();
    for (const { key, value, version } of rows.slice(0, limit)) {
      yield { key, value: copyOf(value) as T, version };
    }
  }

  commit = (change: Change): Promise<string | null> =>
    this.#run(() => {
      if (this.commitsLeft-- <= 0) throw new StoreError("unavailable", "the process has crashed");
      if (
        change.checks.some(({ key, version }) => (this.disk.rows.get(idOf(key))?.version ?? null) !== version)
      ) return null;
      const version = String(++this.disk.commits).padStart(12, "0");
      const place = () => String(++this.disk.orders).padStart(12, "0");
      // All sequences share their places here, so what stands between two may be another's.
      const ordered = change.orderedBuilds.flatMap(({ build }) => build(place(), () => false));
      for (const mutation of [...change.mutations, ...ordered]) {
        const id = idOf(mutation.key);
        if (mutation.kind === "delete") this.disk.delete(id);
        else {
          const before = (this.disk.rows.get(id)?.value ?? 0n) as bigint;
          const value = mutation.kind === "set" ? copyOf(mutation.value) : before + mutation.amount;
          this.disk.set(id, { key: mutation.key, value, version });
        }
      }
      this.committed(change);
      return version;
    });

  close = (): void => {};

  #slot<T>(key: Key): Slot<T> {
    const stored = this.disk.rows.get(idOf(key));
    return { key, value: stored ? copyOf(stored.value) as T : null, version: stored?.version ?? null };
  }

  async #run<T>(work: () => T): Promise<T> {
    await Promise.resolve();
    if (this.trouble) throw this.trouble;
    if (this.commitsLeft < 0) throw new StoreError("unavailable", "the process has crashed");
    return work();
  }
}

/** What is not an object cannot be changed by who gets it. */
function copyOf(value: unknown): unknown {
  return typeof value === "string" || typeof value === "number" ? value : structuredClone(value);
}

const idOf = (key: Key) => JSON.stringify(key);

/** Strings before numbers: the order of the native engine. */
function compareParts(a: KeyPart, b: KeyPart): number {
  if (typeof a !== typeof b) return typeof a === "string" ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareKeys(a: Key, b: Key): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = compareParts(a[i]!, b[i]!);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Where the key stands in keys that are in order, or would. */
function placeOf(keys: readonly Key[], key: Key): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareKeys(keys[middle]!, key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
