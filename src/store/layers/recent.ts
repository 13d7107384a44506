/**
 * The newest rows of each sequence (`Change.ordered`), in memory as they were committed: for a process that is alone on
 * its data, whose webhooks and streams follow the log at its end. Reading what has just been written asks the engine
 * nothing.
 *
 * Each row knows whether it follows the one before it: where another process (a command) took a place in between, the
 * rows before it are forgotten, and whoever is behind them reads the engine. And what anybody has read there, or written,
 * is never left out of a later read, though the commit that wrote it be not answered yet. So a reader misses nothing.
 */
import { LRUCache } from "lru-cache";
import { atMost } from "../../base/at_most.ts";
import type { Clock } from "../../runtime.ts";
import { Change, type Key, type KeyPart, type Mutation, nameOfKey, type Range, type Row } from "../kv.ts";
import type { ChunkedKv } from "./chunk.ts";
import { sizeBound } from "./size.ts";

/** Of one sequence; whoever is further behind reads more at a time from the engine. */
const MOST_ROWS = 32;
const MOST_SEQUENCES = 200;
const MOST_NEWEST = 10_000;
/** A larger row is seldom: the rows before it are forgotten, and it is read from the engine. */
const LARGEST_ROW_BYTES = 16 * 1024;
/** So long after a row was written, nothing behind it is believed without a look: another process writes seldom. */
const BELIEVED_MS = 1_000;

/** Rows below one prefix that follow each other without a gap, the newest last; at least one. */
interface Stretch {
  rows: Row<unknown>[];
  /** When the newest was written, Unix ms. */
  at: number;
}

/** What a commit writes at its place. */
interface Placed {
  order: string;
  follows: (earlier: string) => boolean;
  mutations: readonly Mutation[];
}

interface RecentOptions {
  clock: Clock;
  /** The first parts of the keys of rows that are written at places of sequences. */
  families: ReadonlySet<KeyPart>;
}

/** Values given to a commit must not change after it. */
export function withRecent(kv: ChunkedKv, { clock, families }: RecentOptions): ChunkedKv {
  /** By the name of the rows' prefix. */
  const stretches = new LRUCache<string, Stretch>(atMost(MOST_SEQUENCES));
  /** The highest order that anybody here has read or written, by the same name. */
  const newest = new LRUCache<string, string>(atMost(MOST_NEWEST));

  /** Returns the highest order of the row's sequence, this one included. */
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
      // An answer that comes late: what lies behind it was written, or read, before.
      if (order < saw(key)) continue;
      const stretch = stretches.get(name);
      const end = stretch && orderOf(stretch.rows.at(-1)!);
      stretches.delete(name);
      if (sizeBound(value) > LARGEST_ROW_BYTES) continue;
      const rows = end !== undefined && follows(end) ? stretch!.rows.slice(1 - MOST_ROWS) : [];
      stretches.set(name, { rows: [...rows, { key, value, version }], at: clock.now() });
    }
  }

  /** Somebody changes or removes a row of a stretch: none of it is believed any more. */
  function forget({ mutations }: Change): void {
    for (const { key } of mutations) {
      if (!families.has(key[0]!)) continue;
      const name = nameOfKey(key.slice(0, -1));
      const stretch = stretches.get(name);
      if (stretch && key.at(-1)! >= orderOf(stretch.rows[0]!)) stretches.delete(name);
    }
  }

  /** The rows from the start of the range on; null where only the engine knows. */
  function known({ prefix, start, end }: Range<unknown>): Row<unknown>[] | null {
    if (!start || end || !families.has(prefix[0]!) || start.length !== prefix.length + 1) return null;
    const name = nameOfKey(prefix);
    const stretch = stretches.get(name);
    const from = start.at(-1)!;
    if (!stretch || from < orderOf(stretch.rows[0]!)) return null;
    // Somebody has read more than this: the answer to its commit is on its way.
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

/** The change, which says in `placed` what it writes at its places; the last of several attempts counts. */
function noting(change: Change, placed: Placed[]): Change {
  const noted = new Change();
  noted.checks.push(...change.checks);
  noted.mutations.push(...change.mutations);
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
