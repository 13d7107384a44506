/**
 * Caches for a process that is alone on its data: `withMemory` of rows as they were last read or written, for what reads
 * what it has just written, and `withRecent` of the newest rows of each sequence.
 */
import { LRUCache } from "lru-cache";
import {
  Change,
  type Key,
  type KeyOf,
  type KeyPart,
  type Mutation,
  nameOfKey,
  type Range,
  type Row,
  type Slot,
} from "../kv.ts";
import type { ChunkedKv } from "./chunk.ts";
import { sizeBound } from "../limits.ts";
import { atMost } from "../../base/at_most.ts";
import type { Clock } from "../../runtime.ts";

/** Capacity in bytes. */
const BYTES = 8 * 1024 ** 2;
/** Overhead of a row beside its value: key, name, map entries. */
const ROW_BYTES = 500;
/** Larger rows are rare and would evict many others. */
const LARGEST_ROW_BYTES = 64 * 1024;

/** Lists that found nothing. */
const MOST_EMPTY = 10_000;
/** For this long the absence of rows that other processes rarely write is trusted. */
const BELIEVED_MS = 1_000;

/** First key parts. */
type Families = ReadonlySet<KeyPart>;

interface MemoryOptions {
  families: Families;
  /** Families whose absent rows are cached too. */
  absences: Families;
  /** Families of which lists that find nothing are believed for a moment. */
  rare: Families;
  clock: Clock;
}

/**
 * Caches the rows of these families. Callers must not modify a value after they have given it to a commit.
 *
 * Writes by another process (a command) are noticed in two ways: a commit whose check fails evicts the rows that it
 * checked, and a list evicts rows that it finds changed. Read-modify-write commits check what they read, as always. The
 * absence of a row is cached only for families in which no other process creates rows.
 */
export function withMemory(kv: ChunkedKv, { families, absences, rare, clock }: MemoryOptions): ChunkedKv {
  /** When lists found nothing, Unix ms, by name of the prefix. */
  const nothing = new LRUCache<string, number>(atMost(MOST_EMPTY));
  /** Number of commits to those families, begun and ended: a list that began before one may be wrong after it. */
  let filled = 0;
  const rows = new LRUCache<string, Slot<unknown>>({
    maxSize: BYTES,
    maxEntrySize: LARGEST_ROW_BYTES,
    sizeCalculation: ({ value }) => ROW_BYTES + sizeBound(value),
  });
  /** Reads in progress whose results may still be cached: a commit of the same row cancels that. */
  const reading = new Map<string, symbol>();
  /** Rows of commits in progress: what is read of them may be old before the commit is known to have been written. */
  const writing = new Set<ReadonlyMap<string, unknown>>();

  const isRemembered = ([family]: Key) => families.has(family!);

  function remember(name: string, slot: Slot<unknown>): void {
    if (slot.version !== null || absences.has(slot.key[0]!)) rows.set(name, slot);
  }

  function forget(names: Iterable<string>): void {
    for (const name of names) {
      rows.delete(name);
      reading.delete(name);
    }
  }

  async function read<T>(keys: readonly KeyOf<T>[]): Promise<Slot<T>[]> {
    const ticket = Symbol();
    const names = keys.map((key) => isRemembered(key) ? nameOfKey(key) : null);
    const mine = (name: string | null): name is string => name !== null && reading.get(name) === ticket;
    for (const name of names) {
      if (name !== null && !writing.values().some((written) => written.has(name))) reading.set(name, ticket);
    }
    try {
      const slots = keys.length === 1 ? [await kv.get(keys[0]!)] : await kv.getMany(keys);
      slots.forEach((slot, i) => mine(names[i]!) && remember(names[i]!, slot));
      return slots;
    } finally {
      for (const name of names) if (mine(name)) reading.delete(name);
    }
  }

  function known<T>(key: KeyOf<T>): Slot<T> | undefined {
    return isRemembered(key) ? rows.get(nameOfKey(key)) as Slot<T> | undefined : undefined;
  }

  return {
    ...kv,
    get: async (key) => known(key) ?? (await read([key]))[0]!,

    async getMany<T>(keys: readonly KeyOf<T>[]) {
      const found = keys.map((key) => known(key));
      const missing = keys.filter((_, i) => found[i] === undefined);
      const slots = missing.length === 0 ? [] : await read(missing);
      let next = 0;
      return found.map((slot) => slot ?? slots[next++]!);
    },

    async *list(range, options) {
      const isWhole = rare.has(range.prefix[0]!) && !range.start && !range.end;
      const prefix = isWhole ? nameOfKey(range.prefix) : null;
      if (prefix !== null && clock.now() - (nothing.get(prefix) ?? -Infinity) < BELIEVED_MS) return;
      const before = filled;
      let count = 0;
      for await (const row of kv.list(range, options)) {
        count++;
        if (isRemembered(row.key)) {
          const name = nameOfKey(row.key);
          // Either of the two may be the newer one.
          if (rows.has(name) && rows.peek(name)!.version !== row.version) forget([name]);
        }
        yield row;
      }
      if (prefix !== null && count === 0 && before === filled) nothing.set(prefix, clock.now());
    },

    async commit(change, options) {
      const written = writtenBy(change, isRemembered);
      const fills = change.mutations.some(({ key }) => rare.has(key[0]!));
      const refill = () => {
        filled++;
        nothing.clear();
      };
      if (fills) refill();
      forget(written.keys());
      writing.add(written);
      let version: string | null = null;
      try {
        version = await kv.commit(change, options);
      } finally {
        writing.delete(written);
        forget(written.keys());
        if (fills) refill();
        if (version === null) {
          forget(change.checks.filter(({ key }) => isRemembered(key)).map(({ key }) => nameOfKey(key)));
        }
      }
      if (version === null) return null;
      for (const [name, { key, value }] of written) {
        if (value !== undefined) remember(name, { key, value, version: value === null ? null : version });
      }
      return version;
    },
  };
}

/**
 * Returns the new value of each cacheable row that the change writes, by name; undefined if only the engine knows it.
 */
function writtenBy(
  { mutations }: Change,
  isRemembered: (key: Key) => boolean,
): Map<string, { key: Key; value: unknown }> {
  const written = new Map<string, { key: Key; value: unknown }>();
  for (const mutation of mutations) {
    const { kind, key } = mutation;
    if (!isRemembered(key)) continue;
    written.set(nameOfKey(key), { key, value: kind === "set" ? mutation.value : kind === "delete" ? null : undefined });
  }
  return written;
}

/** Rows cached per sequence; readers that are further behind read larger pages from the engine. */
const MOST_ROWS = 32;
const MOST_SEQUENCES = 200;
const MOST_NEWEST = 10_000;
/** Larger rows are rare: one evicts the rows before it, and is read from the engine. */
const LARGEST_RECENT_BYTES = 16 * 1024;

/** Contiguous rows below one prefix, newest last; at least one. */
interface Stretch {
  rows: Row<unknown>[];
  /** When the newest was written, Unix ms. */
  at: number;
}

/** What a commit writes at its place in a sequence. */
interface Placed {
  order: string;
  follows: (earlier: string) => boolean;
  mutations: readonly Mutation[];
}

interface RecentOptions {
  clock: Clock;
  /** First key parts of the families whose rows are ordered. */
  families: ReadonlySet<KeyPart>;
}

/**
 * Caches the newest rows of each sequence (`Change.ordered`), for webhooks and streams that follow the log at its end.
 * Callers must not modify a value after they have given it to a commit.
 *
 * Cached rows are contiguous: when another process (a command) took a place in between, the rows before it are evicted,
 * and readers that are further behind read from the engine. A row that was read or written here is never missing from a
 * later read, even if the commit that wrote it has not been acknowledged yet. So readers miss nothing.
 */
export function withRecent(kv: ChunkedKv, { clock, families }: RecentOptions): ChunkedKv {
  /** By name of the prefix. */
  const stretches = new LRUCache<string, Stretch>(atMost(MOST_SEQUENCES));
  /** The highest order read or written in this process, by the same name. */
  const newest = new LRUCache<string, string>(atMost(MOST_NEWEST));

  /** Records the row's order; returns the highest one seen in its sequence. */
  function saw(key: Key): string {
    const name = nameOfKey(key.slice(0, -1));
    const order = orderOf({ key });
    const before = newest.get(name) ?? "";
    if (order <= before) return before;
    newest.set(name, order);
    return order;
  }

  function note({ order, follows, mutations }: Placed, version: string): void {
    for (const mutation of mutations) {
      if (mutation.kind !== "set" || mutation.key.at(-1) !== order || !families.has(mutation.key[0]!)) continue;
      const { key, value } = mutation;
      const name = nameOfKey(key.slice(0, -1));
      // A late acknowledgement: later rows have already been written or read.
      if (order < saw(key)) continue;
      const stretch = stretches.get(name);
      const end = stretch && orderOf(stretch.rows.at(-1)!);
      stretches.delete(name);
      if (sizeBound(value) > LARGEST_RECENT_BYTES) continue;
      const rows = end !== undefined && follows(end) ? stretch!.rows.slice(1 - MOST_ROWS) : [];
      stretches.set(name, { rows: [...rows, { key, value, version }], at: clock.now() });
    }
  }

  /** Evicts the stretches in which the change modifies or deletes a row. */
  function forget({ mutations }: Change): void {
    for (const { key } of mutations) {
      if (!families.has(key[0]!)) continue;
      const name = nameOfKey(key.slice(0, -1));
      const stretch = stretches.get(name);
      if (stretch && key.at(-1)! >= orderOf(stretch.rows[0]!)) stretches.delete(name);
    }
  }

  /** Returns the rows from the start of the range on; null if only the engine can tell. */
  function known({ prefix, start, end }: Range<unknown>): Row<unknown>[] | null {
    if (!start || end || !families.has(prefix[0]!) || start.length !== prefix.length + 1) return null;
    const name = nameOfKey(prefix);
    const stretch = stretches.get(name);
    const from = start.at(-1)!;
    if (!stretch || from < orderOf(stretch.rows[0]!)) return null;
    // A later row was read already, while the acknowledgement of its commit is still pending.
    if (orderOf(stretch.rows.at(-1)!) !== newest.get(name)) return null;
    const rows = stretch.rows.slice(stretch.rows.findLastIndex((row) => orderOf(row) < from) + 1);
    return rows.length > 0 || clock.now() - stretch.at < BELIEVED_MS ? rows : null;
  }

  return {
    ...kv,
    async *list<T>(range: Range<T>, options: { limit?: number; reverse?: boolean } = {}) {
      const rows = options.reverse ? null : known(range);
      if (rows) return yield* rows.slice(0, options.limit) as Row<T>[];
      for await (const row of kv.list(range, options)) {
        if (families.has(row.key[0]!)) saw(row.key);
        yield row;
      }
    },

    async commit(change, options) {
      try {
        if (change.orderedBuilds.length === 0) return await kv.commit(change, options);
        const placed: Placed[] = [];
        const version = await kv.commit(noting(change, placed), options);
        if (version !== null) { for (const each of placed) note(each, version); }
        return version;
      } finally {
        forget(change);
      }
    },
  };
}

/** Returns the change, which records in `placed` what it writes at its places; the last of several attempts counts. */
function noting(change: Change, placed: Placed[]): Change {
  const noted = new Change().include({ ...change, orderedBuilds: [] });
  change.orderedBuilds.forEach(({ sequence, build }, i) =>
    noted.ordered(sequence, (order, follows) => {
      const mutations = build(order, follows);
      placed[i] = { order, follows, mutations };
      return mutations;
    })
  );
  return noted;
}

function orderOf({ key }: { key: Key }): string {
  return String(key.at(-1));
}
