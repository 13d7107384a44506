/**
 * The PostgreSQL engine behind the port `kv.ts`. A commit is one call of a function in the database, hence one round
 * trip and one transaction. Changes that arrive while others are in flight share the next call, each with its own
 * checks.
 *
 * Statements are not prepared by name, and no state is kept in a session, so that poolers may be used.
 */
import { Buffer } from "node:buffer";
import type { Runtime } from "../../runtime.ts";
import {
  type Change,
  isRow,
  type Key,
  type KeyOf,
  type Kv,
  type ListOptions,
  type Row,
  type Slot,
  StoreAway,
} from "../kv.ts";
import { withGroupCommit } from "../layers/group_commit.ts";
import type { ChunkedKv } from "../layers/chunk.ts";
import { keyBytes, keyOfBytes, rangeBytes } from "../layers/key_bytes.ts";
import { inOrder } from "../layers/order.ts";
import { deserialise } from "../layers/row_format.ts";
import { isOwnRow } from "../layers/rows.ts";
import { shareReads } from "../layers/shared_reads.ts";
import { assertFits, type CommitLoad } from "../limits.ts";
import { commitParameters } from "./parameters.ts";
import { makeConnections } from "./connections.ts";
import { prepareSchema } from "./schema.ts";
import { guarded, isRace, storeError } from "./store_error.ts";

/** Batches of reads, and of commits, in flight at once. With more of them each would be smaller. */
const FLIGHTS = 3;
/** Reads and commits that take longer fail, also if those before them are what holds them up. */
const ANSWER_MS = 10_000;
/** Limits of one transaction; large values do not count. */
const LIMITS: CommitLoad = { checks: 2_000, mutations: 4_000, keyBytes: 1024 * 1024, bytes: 8 * 1024 * 1024 };
/** Checks that a single change may have. */
const MOST_CHECKS = 64;
/** Rows fetched per round of a `list`. */
const ROWS_A_ROUND = 200;
/** Attempts that a transaction may lose to other processes before it is given up as locked. */
const MOST_RACES = 10;

const COLUMNS = "key, version, value, counter";
const COMMIT = "select version, failed from paloma.commit($1, $2, $3, $4, $5, $6, $7, $8)";

/** A row of the table, as the client reads it. */
interface Found {
  key: Buffer;
  version: string;
  value: Buffer | null;
  counter: string | null;
}

interface Answer {
  version: string;
  /** Indexes of the changes that failed a check. */
  failed: number[];
}

/**
 * Opens the store in the database named by the URL, creating or migrating its schema. Throws StoreError.
 */
export async function openPostgres(url: string, { runtime }: { runtime: Runtime }): Promise<ChunkedKv> {
  const connections = makeConnections(url, runtime);
  try {
    await guarded(() => connections.withClient(prepareSchema));
  } catch (error) {
    await connections.end();
    throw error;
  }
  return postgresKv(connections, { runtime });
}

function postgresKv(connections: ReturnType<typeof makeConnections>, { runtime }: { runtime: Runtime }): ChunkedKv {
  const select = (sql: string, values: unknown[]) => guarded(() => connections.query<Found>(sql, values));

  async function getMany<T>(keys: readonly KeyOf<T>[]): Promise<Slot<T>[]> {
    if (keys.length === 0) return [];
    const names = keys.map((key) => keyBytes(key));
    const found = await select(`select ${COLUMNS} from paloma.row where key = any($1)`, [names]);
    const rows = new Map(found.map((row) => [nameOf(row.key), row]));
    return keys.map((key, i) => slotOf<T>(key, rows.get(nameOf(names[i]!))));
  }

  /** Reads in one repeatable-read transaction, hence a snapshot. */
  async function* rows(): AsyncIterable<Row<unknown>> {
    const client = await guarded(() => connections.connect());
    try {
      await guarded(() => client.query("begin isolation level repeatable read read only"));
      const selectHere = async (sql: string, values: unknown[]) =>
        (await guarded(() => client.query<Found>(sql, values))).rows;
      for await (const row of rowsIn<unknown>(selectHere, ALL)) if (!isOwnRow(row.key)) yield row;
    } finally {
      // Closing the connection ends its transaction.
      client.release(true);
    }
  }

  /** Commits in one transaction. Unless it throws, the result of each change is final. */
  async function commitAll(changes: readonly Change[]): Promise<(string | null)[]> {
    const values = commitParameters(changes);
    for (let race = 1;; race++) {
      try {
        const [answer] = await connections.query<Answer>(COMMIT, [...values]);
        const failed = new Set(answer!.failed);
        return changes.map((_, i) => failed.has(i) ? null : answer!.version);
      } catch (error) {
        // No pause: the server has already waited for the lock.
        if (!isRace(error) || race === MOST_RACES) throw storeError(error);
      }
    }
  }

  const late = () => new StoreAway("PostgreSQL does not answer in time");
  const limit = { clock: runtime.clock, ms: ANSWER_MS, late };
  const bare: Kv = {
    mostChecks: MOST_CHECKS,
    get: shareReads({ getMany }, { flights: FLIGHTS, limit }),
    getMany,
    list: (range, options) => rowsIn(select, rangeBytes(range), options),
    commit: async (change) => (await together([change]))[0]!,
    close: () => void connections.end(),
  };
  const together = inOrder(bare, commitAll, { runtime });
  const grouped = withGroupCommit(bare, { limits: LIMITS, together, flights: FLIGHTS, limit });
  return {
    ...grouped,
    async commit(change, options) {
      assertFits(change, bare);
      return await grouped.commit(change, options);
    },
    rows,
    // Large values are stored whole in their rows.
    sweepChunks: () => Promise.resolve(0),
  };
}

/** Bounds of all keys: each begins with a tag. */
const ALL = { from: Buffer.of(0), to: Buffer.of(0xff) };

/** Yields the rows from one key to before another, in the order of the keys or its reverse. */
async function* rowsIn<T>(
  select: (sql: string, values: unknown[]) => Promise<Found[]>,
  { from, to }: ReturnType<typeof rangeBytes>,
  { limit = Infinity, reverse = false }: ListOptions = {},
): AsyncGenerator<Row<T>> {
  for (let left = limit; left > 0;) {
    const count = Math.min(left, ROWS_A_ROUND);
    const found = await select(
      `select ${COLUMNS} from paloma.row where key >= $1 and key < $2
       order by key ${reverse ? "desc" : "asc"} limit $3`,
      [from, to, count],
    );
    for (const row of found) {
      const slot = slotOf<T>(keyOfBytes(row.key), row);
      if (isRow(slot)) yield slot;
    }
    if (found.length < count) return;
    left -= count;
    const last = found.at(-1)!.key;
    if (reverse) to = last;
    else from = Buffer.concat([last, Buffer.of(0)]);
  }
}

function slotOf<T>(key: Key, row: Found | undefined): Slot<T> {
  if (row === undefined) return { key, value: null, version: null };
  const value = row.value === null ? BigInt(row.counter!) : deserialise(row.value);
  return { key, value: value as T, version: row.version };
}

const nameOf = (bytes: Buffer) => bytes.toString("latin1");
