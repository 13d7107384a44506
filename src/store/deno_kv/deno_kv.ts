/**
 * The Deno KV engine (SQLite) behind the port `kv.ts`: WAL with `synchronous=FULL`, so a resolved commit is on disk.
 * `openDenoKv` opens the complete store: this engine under group commit, background throttling and chunked values.
 */
import type { ItemLimit } from "../../base/batcher.ts";
import { inBatches } from "../../base/batches.ts";
import { within } from "../../base/within.ts";
import type { Clock, Runtime } from "../../runtime.ts";
import { makeFile, narrowExpiryIndex } from "./make_file.ts";
import {
  type Change,
  isRow,
  type Key,
  type Kv,
  type ListOptions,
  type Mutation,
  type Range,
  type Row,
  type Slot,
  StoreError,
} from "../kv.ts";
import { withBackgroundThrottle } from "../layers/background.ts";
import { type ChunkedKv, withChunks } from "../layers/chunk.ts";
import { withGroupCommit } from "../layers/group_commit.ts";
import { withOrder } from "../layers/order.ts";
import { storeKeys } from "../layers/rows.ts";
import { type CommitLoad, signed } from "../limits.ts";

/** Deno KV accepts at most this many keys in one `getMany`. */
const KEYS_A_READ = 10;
/** Just below Deno KV's 100 checks, 1,000 mutations, 80 KiB of keys and 800 KiB in total. */
const LIMITS: CommitLoad = { checks: 90, mutations: 980, keyBytes: 76 * 1024, bytes: 760 * 1024 };
/** Checks that a single change may have; the rest is left for its sequences and for changes merged with it. */
const MOST_CHECKS = 64;
/** Rows fetched per round of a `list`; the engine's own maximum is 500. */
const ROWS_A_ROUND = 200;
/** Attempts that a commit may lose to other instances of the file before it is given up as locked. */
const MOST_RACES = 100;
/** How long opening waits for another process to release the file; the engine itself waits 5 s for each write. */
const OPENING_MS = 6_000;

/**
 * An engine's connections to one file. Reads have their own, so that they do not wait for the flush of earlier commits.
 */
interface Connections {
  writes: Deno.Kv;
  reads: Deno.Kv;
}

/**
 * Opens the store at `path`, creating it if necessary, readable by its owner only. Throws StoreError, `locked` if
 * another process holds the file.
 */
export async function openDenoKv(path: string, options: { runtime: Runtime }): Promise<ChunkedKv> {
  return withLayers(denoKvEngine(await openConnections(path, options), options), { limits: LIMITS, ...options });
}

/** Returns the complete store on the engine. `limit`: how long a commit may take, with those that it waits for. */
export function withLayers(
  engine: Kv,
  { limits, limit, runtime }: { limits: CommitLoad; limit?: ItemLimit; runtime: Runtime },
): ChunkedKv {
  return withChunks(withBackgroundThrottle(withGroupCommit(engine, { limits, limit }), runtime), { runtime });
}

async function openConnections(path: string, options: { runtime: Runtime }): Promise<Connections> {
  const writes = await openNative(path, options);
  // Every connection to `:memory:` has a database of its own.
  if (path === ":memory:") return { writes, reads: writes };
  try {
    narrowExpiryIndex(path, options.runtime);
    const ask = (reads: Deno.Kv) => reads.get(storeKeys.probe());
    return { writes, reads: await openAnswering(path, options.runtime.clock, { ask }) };
  } catch (error) {
    writes.close();
    throw error;
  }
}

/** Opens just the file, without the layers of `openDenoKv`. */
export async function openNative(path: string, options: { runtime: Pick<Runtime, "clock"> }): Promise<Deno.Kv> {
  if (path !== ":memory:") await guarded(() => makeFile(path));
  return await openAnswering(path, options.runtime.clock);
}

/**
 * Opens the file or URL and waits until `ask` is answered, by default until it can be written; if that takes too long,
 * closes it and throws `late()`. An instance begins with a sweep of expired rows, which waits forever while another
 * process holds the file locked, and every operation queues behind that sweep: reads too, and closing, which therefore
 * happens once the file is free.
 */
export async function openAnswering(
  place: string,
  clock: Clock,
  { ask = writeNothing, late = () => new Error("database is locked") }: {
    ask?: (native: Deno.Kv) => Promise<unknown>;
    late?: () => Error;
  } = {},
): Promise<Deno.Kv> {
  return await guarded(async () => {
    const native = await Deno.openKv(place);
    const asked = ask(native);
    try {
      if (await within(clock, OPENING_MS, asked) === "late") throw late();
    } catch (error) {
      const close = () => native.close();
      asked.then(close, close);
      throw error;
    }
    return native;
  });
}

/**
 * Waits up to 5 s until the file can be written. An atomic operation with checks does not wait: while another instance
 * writes, SQLite refuses at once to upgrade a transaction that has read. Nothing is written then, and the operation can
 * be retried after this.
 */
function writeNothing(native: Deno.Kv): Promise<void> {
  return native.delete(storeKeys.probe());
}

/**
 * The bare engine: values up to 64 KiB, one atomic operation per commit. Exceeding Deno KV's own limits throws
 * TypeError. One such error is not atomic: an `add` to a value that is not a counter is refused, but the mutations
 * before it are written (Deno 2.9). The row types of each room make sure that `add` is only used on counters.
 */
export function denoKvEngine({ writes, reads }: Connections, options: { runtime: Pick<Runtime, "clock"> }): Kv {
  async function write(change: Change): Promise<string | null> {
    let atomic = writes.atomic();
    for (const check of change.checks) atomic = atomic.check({ key: check.key, versionstamp: check.version });
    for (const mutation of change.mutations) atomic = mutate(atomic, mutation);
    for (let race = 1;; race++) {
      try {
        const result = await guarded(() => atomic.commit());
        return result.ok ? result.versionstamp : null;
      } catch (error) {
        const isRace = error instanceof StoreError && error.code === "locked" && change.checks.length > 0;
        if (!isRace || race === MOST_RACES) throw error;
        await guarded(() => writeNothing(writes));
      }
    }
  }

  async function read<T>(key: Key): Promise<Slot<T>> {
    return slotOf<T>(await guarded(() => reads.get(key)));
  }

  const engine: Kv = {
    mostChecks: MOST_CHECKS,
    get: read,

    async getMany<T>(wanted: readonly Key[]): Promise<Slot<T>[]> {
      const parts = inBatches(wanted, KEYS_A_READ).map((keys) => guarded(() => reads.getMany<unknown[]>(keys)));
      return (await Promise.all(parts)).flat().map((entry) => slotOf<T>(entry));
    },

    async *list<T>(range: Range<T>, options: ListOptions = {}): AsyncIterable<Row<T>> {
      const limit = options.limit ?? Infinity;
      if (limit <= 0) return;
      const rows = reads.list(selector(range), {
        reverse: options.reverse ?? false,
        batchSize: Math.min(limit, ROWS_A_ROUND),
        ...(limit === Infinity ? {} : { limit }),
      });
      try {
        for await (const entry of rows) {
          const slot = slotOf<T>(entry);
          if (isRow(slot)) yield slot;
        }
      } catch (error) {
        throw storeError(error);
      }
    },

    commit: write,

    close() {
      writes.close();
      if (reads !== writes) reads.close();
    },
  };
  return withOrder(engine, options);
}

async function guarded<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw storeError(error);
  }
}

function selector(range: Range<unknown>): Deno.KvListSelector {
  const { prefix, end } = range;
  // The prefix itself is not below the prefix.
  const start = range.start && range.start.length > prefix.length ? range.start : undefined;
  if (start && end) return { start, end };
  if (start) return { prefix, start };
  if (end) return { prefix, end };
  return { prefix };
}

/**
 * Counters are signed in the port and unsigned in Deno KV: with two's complement, sums with negative amounts are right.
 */
function counter(value: bigint): Deno.KvU64 {
  return new Deno.KvU64(BigInt.asUintN(64, signed(value)));
}

function mutate(atomic: Deno.AtomicOperation, mutation: Mutation): Deno.AtomicOperation {
  switch (mutation.kind) {
    case "set":
      return atomic.set(mutation.key, typeof mutation.value === "bigint" ? counter(mutation.value) : mutation.value);
    case "delete":
      return atomic.delete(mutation.key);
    case "add":
      return atomic.mutate({ type: "sum", key: mutation.key, value: counter(mutation.amount) });
  }
}

function slotOf<T>(entry: Deno.KvEntryMaybe<unknown>): Slot<T> {
  const value = entry.value instanceof Deno.KvU64 ? BigInt.asIntN(64, entry.value.value) : entry.value;
  return { key: entry.key as Key, value: value as T | null, version: entry.versionstamp };
}

/** SQLITE_BUSY and SQLITE_LOCKED. */
const LOCKED = /database (table )?is locked/i;
/** SQLITE_FULL, ENOSPC, EDQUOT. */
const FULL = /database or disk is full|no space left|quota exceeded/i;
/**
 * A commit or a key that no engine accepts: the caller's mistake. Deno throws TypeErrors for these and for failures.
 */
const MISTAKE =
  /too large|too many|cannot be empty|could not be cloned|non-U64|keyspace|greater than end key|expected string/i;
/** V8's serialisation format evolves: an older runtime cannot read what a newer one wrote. */
const TOO_NEW = /could not deserialize/i;

/**
 * Returns a `StoreError` for a failure of the engine, by the messages of SQLite and the kernel; a caller's mistake
 * (TypeError, RangeError) is returned as it is.
 */
export function storeError(error: unknown): unknown {
  if (error instanceof StoreError) return error;
  const text = error instanceof Error ? error.message : String(error);
  if (TOO_NEW.test(text)) {
    return new StoreError("unavailable", "a newer build of Paloma wrote this data: use that one", { cause: error });
  }
  if (error instanceof RangeError) return error;
  if (LOCKED.test(text)) {
    return new StoreError("locked", "another process holds the store's file locked", { cause: error });
  }
  if (FULL.test(text)) return new StoreError("full", "there is no space left for the store", { cause: error });
  if (error instanceof TypeError && MISTAKE.test(text)) return error;
  return new StoreError("unavailable", `the store cannot be used: ${text}`, { cause: error });
}
