/**
 * The Deno KV engine (SQLite) behind the port `kv.ts`: WAL with `synchronous=FULL`, so a resolved commit is on disk.
 * `openDenoKv` is the whole store: this engine, under group commit, rests and chunked values.
 */
import { piecesOf } from "../../base/batches.ts";
import { within } from "../../base/within.ts";
import type { Clock, Runtime } from "../../runtime.ts";
import { withGroupCommit } from "../layers/group_commit.ts";
import { type ChunkedKv, withChunks } from "../layers/chunk.ts";
import { withOrder } from "../layers/order.ts";
import { withBackgroundThrottle } from "../layers/background.ts";
import { storeKeys } from "../layers/rows.ts";
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
import type { CommitLoad } from "../limits.ts";
import { makeFile, narrowExpiryIndex } from "./make_file.ts";
import { storeError } from "./store_error.ts";

/** Deno KV answers at most this many keys in one `getMany`. */
const KEYS_A_READ = 10;
/** Below its 100 checks, 1,000 mutations, 80 KiB of keys and 800 KiB in all. */
const LIMITS: CommitLoad = { checks: 90, mutations: 980, keyBytes: 76 * 1024, bytes: 760 * 1024 };
/** Of those, what one change may have; its orders and what goes with it have some too. */
const MOST_CHECKS = 64;
/** Rows that one round of a `list` fetches; the engine's own maximum is 500. */
const ROWS_A_ROUND = 200;
/** How often one commit may lose the race for the file against other instances before it is given up as locked. */
const MOST_RACES = 100;
/** How long opening waits for another process to let go of the file; the engine itself waits 5 s for each write. */
const OPENING_MS = 6_000;

/** An engine's connections to one file: on its own, a read does not wait for the flush of the commits before it. */
interface Connections {
  writes: Deno.Kv;
  reads: Deno.Kv;
}

/**
 * Opens (and makes) the store at `path`, readable by its owner only.
 * Throws StoreError, `locked` when another process holds the file.
 */
export async function openDenoKv(path: string, options: { runtime: Runtime }): Promise<ChunkedKv> {
  const engine = denoKvEngine(await openConnections(path, options), options);
  return withChunks(withBackgroundThrottle(withGroupCommit(engine, { limits: LIMITS }), options.runtime), options);
}

async function openConnections(path: string, options: { runtime: Runtime }): Promise<Connections> {
  const writes = await openNative(path, options);
  // Each connection to memory has a memory of its own.
  if (path === ":memory:") return { writes, reads: writes };
  try {
    narrowExpiryIndex(path, options.runtime);
    return { writes, reads: await openReads(path, options) };
  } catch (error) {
    writes.close();
    throw error;
  }
}

/** Another connection to a file that this process has made private and written to. */
async function openReads(path: string, { runtime }: { runtime: Pick<Runtime, "clock"> }): Promise<Deno.Kv> {
  return await guarded(async () => {
    const native = await Deno.openKv(path);
    await answered(native, native.get(storeKeys.probe()), runtime.clock);
    return native;
  });
}

/** Opens the file alone, without the layers of `openDenoKv`. */
export async function openNative(path: string, options: { runtime: Pick<Runtime, "clock"> }): Promise<Deno.Kv> {
  return await guarded(async () => {
    if (path !== ":memory:") await makeFile(path);
    const native = await Deno.openKv(path);
    await probe(native, options.runtime.clock);
    return native;
  });
}

/** Closes `native` and throws when it cannot write soon; without any answer, what `late` makes. */
export async function probe(native: Deno.Kv, clock: Clock, late = locked): Promise<void> {
  await answered(native, writeNothing(native), clock, late);
}

const locked = () => new Error("database is locked");

/**
 * Closes `native` and throws when what was asked of it is not answered soon. An instance begins with a sweep of expired
 * rows, which waits without end while another process holds the file locked, and all that is asked of it waits behind:
 * reads too, and closing it, which is done once the file is free.
 */
async function answered(native: Deno.Kv, asked: Promise<unknown>, clock: Clock, late = locked): Promise<void> {
  try {
    if (await within(clock, OPENING_MS, asked) === "late") throw late();
  } catch (error) {
    const close = () => native.close();
    asked.then(close, close);
    throw error;
  }
}

/**
 * Waits until the file can be written, 5 s at most. An atomic with checks does not: SQLite refuses at once to turn a
 * transaction that has read into one that writes while another instance writes. Nothing was written then, and the
 * atomic may simply be tried again after this.
 */
function writeNothing(native: Deno.Kv): Promise<void> {
  return native.delete(storeKeys.probe());
}

/**
 * The bare engine: values up to 64 KiB, one atomic a commit. Limits of Deno KV itself are TypeErrors. One of them breaks
 * the atom: an `add` to a value that is no counter is refused, but what stands before it in the commit is written
 * (Deno 2.9). The types of each room's rows keep `add` to counters.
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
      const parts = piecesOf(wanted, KEYS_A_READ).map((keys) => guarded(() => reads.getMany<unknown[]>(keys)));
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

export async function guarded<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw storeError(error);
  }
}

function selector(range: Range<unknown>): Deno.KvListSelector {
  const { prefix, end } = range;
  // The prefix itself is no row below it.
  const start = range.start && range.start.length > prefix.length ? range.start : undefined;
  if (start && end) return { start, end };
  if (start) return { prefix, start };
  if (end) return { prefix, end };
  return { prefix };
}

/** Counters are signed for the port and unsigned for Deno KV: two's complement makes sums of negatives come out right. */
function counter(value: bigint): Deno.KvU64 {
  if (BigInt.asIntN(64, value) !== value) throw new RangeError("a counter holds a signed 64-bit number");
  return new Deno.KvU64(BigInt.asUintN(64, value));
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
