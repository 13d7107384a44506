/**
 * A process's connections to PostgreSQL, each to a server that takes writes; a pool for each server that the URL names.
 * Where one turns out to lead to a server that is gone or was replaced, the idle ones are given up too: each of them would
 * be found out by a time-out of its own. Where the server takes no more of them, those that there are do the work.
 */
// @ts-types="@types/pg"
import pg from "pg";
import type { Runtime } from "../../runtime.ts";
import { Servers } from "./servers.ts";
import { isOfOtherServer, lacksConnections } from "./store_error.ts";

/** Beside the bell's: for lists there are those that shared reads and commits leave. */
const CONNECTIONS = 8;
/** A server that does not answer is away: requests then fail in time, and the connection is given up. */
const CONNECT_MS = 5_000;
const QUERY_MS = 10_000;
const IDLE_MS = 60_000;
/** A server that takes no more connections is asked for more after this time. */
const FEWER_FOR_MS = 60_000;

/** `url`: `postgres://…`, with a host or several; the first connection is made when it is needed. */
export function makeConnections(url: string, runtime: Pick<Runtime, "clock" | "log">) {
  const servers = new Servers(url);
  const pools = servers.urls.map((one) => openPool(one, (client) => servers.assertWritable(client), runtime));
  const connect = servers.firstWritable(pools.map((pool) => pool.connect));

  return {
    /** A connection for several statements; it must be released. Throws as `query` does. */
    connect,
    /** Throws what the server and its client throw. */
    async query<Row extends pg.QueryResultRow>(sql: string, values: unknown[]): Promise<Row[]> {
      const client = await connect();
      let failure: unknown;
      try {
        return (await client.query<Row>(sql, values)).rows;
      } catch (error) {
        failure = error;
        throw error;
      } finally {
        client.release(failure !== undefined);
        if (isOfOtherServer(failure)) { for (const pool of pools) pool.dropIdle(); }
      }
    },
    async end() {
      await Promise.all(pools.map((pool) => pool.end()));
    },
  };
}

/** Connections to one server. */
function openPool(
  url: string,
  onConnect: (client: pg.ClientBase) => Promise<void>,
  { clock, log }: Pick<Runtime, "clock" | "log">,
) {
  const pool = new pg.Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    idleTimeoutMillis: IDLE_MS,
    keepAlive: true,
    application_name: "paloma",
    onConnect,
  });
  // An idle connection that breaks is replaced by the next query.
  pool.on("error", (error) => log.warn({ error: String(error) }, "a connection to PostgreSQL broke"));

  // One that breaks between two statements fails the next of them; unheard, its error would end the process.
  pool.on("connect", (client) => void client.on("error", () => {}));

  let asksForMore = () => {};

  function goOnWithThese(): void {
    pool.options.max = pool.totalCount;
    log.warn({ connections: pool.totalCount }, "PostgreSQL takes no more connections: those that there are have to do");
    asksForMore();
    asksForMore = clock.after(FEWER_FOR_MS, () => pool.options.max = CONNECTIONS);
  }

  return {
    async connect(): Promise<pg.PoolClient> {
      for (;;) {
        try {
          return await pool.connect();
        } catch (error) {
          if (!lacksConnections(error) || pool.totalCount === 0) throw error;
          goOnWithThese();
        }
      }
    },
    dropIdle() {
      for (let idle = pool.idleCount; idle > 0; idle--) {
        void pool.connect().then((client) => client.release(true), () => {});
      }
    },
    end() {
      asksForMore();
      return pool.end();
    },
  };
}
