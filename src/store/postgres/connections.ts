/**
 * A process's connections to PostgreSQL, each to a writable server; one pool for each server named in the URL. When a
 * connection turns out to lead to a server that is gone or was replaced, idle ones are dropped too: otherwise each
 * would cost a timeout of its own. When the server accepts no further connections, the existing ones are shared.
 */
// @ts-types="@types/pg"
import pg from "pg";
import type { Runtime } from "../../runtime.ts";
import { Servers } from "./servers.ts";
import { isOfOtherServer, lacksConnections } from "./store_error.ts";

/** Without the bell's connection. Lists use those that shared reads and commits leave free. */
const CONNECTIONS = 8;
/**
 * A server that does not answer within these times counts as away: the request fails, and the connection is dropped.
 */
const CONNECT_MS = 5_000;
const QUERY_MS = 10_000;
const IDLE_MS = 60_000;
/** When a server has refused further connections, more are requested only after this time. */
const FEWER_FOR_MS = 60_000;

/** `url`: `postgres://…`, with one or more hosts. Connects on first use. */
export function makeConnections(url: string, runtime: Pick<Runtime, "clock" | "log">) {
  const servers = new Servers(url);
  const pools = servers.urls.map((one) => openPool(one, (client) => servers.assertWritable(client), runtime));
  const connect = servers.firstWritable(pools.map((pool) => pool.connect));

  return {
    /** Returns a connection for several statements, which must be released. Throws as `query` does. */
    connect,
    /** Runs one statement. Throws the errors of the server and of its client unchanged. */
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

/** Opens a pool of connections to one server. */
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

  // A checked-out connection that breaks fails its next statement. Without a listener, the error would end the process.
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
