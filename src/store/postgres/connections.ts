/**
 * A process's connections to PostgreSQL, each to a server that takes writes. Where one turns out to lead to a server that
 * is gone or was replaced, the idle ones are given up too: each of them would be found out by a time-out of its own. Where
 * the server takes no more of them, those that there are do the work.
 */
// @ts-types="@types/pg"
import pg from "pg";
import type { Runtime } from "../../runtime.ts";
import { StoreError } from "../kv.ts";
import { isOfOtherServer, lacksConnections } from "./store_error.ts";

/** Beside the bell's: for lists there are those that shared reads and commits leave. */
const CONNECTIONS = 8;
/** A server that does not answer is away: requests then fail in time, and the connection is given up. */
const CONNECT_MS = 5_000;
const QUERY_MS = 10_000;
const IDLE_MS = 60_000;
/** A server that takes no more connections is asked for more after this time. */
const FEWER_FOR_MS = 60_000;

export interface Connections {
  /** Throws what the server and its client throw. */
  query<Row extends pg.QueryResultRow>(sql: string, values: unknown[]): Promise<Row[]>;
  /** A connection for several statements; it must be released. Throws as `query` does. */
  connect(): Promise<pg.PoolClient>;
  end(): Promise<void>;
}

/** `url`: `postgres://…`; the first connection is made when it is needed. */
export function makeConnections(url: string, { clock, log }: Pick<Runtime, "clock" | "log">): Connections {
  const pool = new pg.Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    idleTimeoutMillis: IDLE_MS,
    keepAlive: true,
    application_name: "paloma",
    onConnect: refuseStandby,
  });
  // An idle connection that breaks is replaced by the next query.
  pool.on("error", (error) => log.warn({ error: String(error) }, "a connection to PostgreSQL broke"));

  // One that breaks between two statements fails the next of them; unheard, its error would end the process.
  pool.on("connect", (client) => void client.on("error", () => {}));

  function dropIdle(): void {
    for (let idle = pool.idleCount; idle > 0; idle--) {
      void pool.connect().then((client) => client.release(true), () => {});
    }
  }

  let asksForMore = () => {};

  function goOnWithThese(): void {
    pool.options.max = pool.totalCount;
    log.warn({ connections: pool.totalCount }, "PostgreSQL takes no more connections: those that there are have to do");
    asksForMore();
    asksForMore = clock.after(FEWER_FOR_MS, () => pool.options.max = CONNECTIONS);
  }

  return {
    async query<Row extends pg.QueryResultRow>(sql: string, values: unknown[]) {
      for (;;) {
        try {
          return (await pool.query<Row>(sql, values)).rows;
        } catch (error) {
          if (isOfOtherServer(error)) dropIdle();
          if (!lacksConnections(error) || pool.totalCount === 0) throw error;
          goOnWithThese();
        }
      }
    },
    connect: () => pool.connect(),
    end() {
      asksForMore();
      return pool.end();
    },
  };
}

/** What a standby answers is old, and it takes no commit: after a switch a name may lead to it for a while. */
async function refuseStandby(client: pg.ClientBase): Promise<void> {
  const { rows: [server] } = await client.query("select pg_is_in_recovery() as stands_by");
  if (server.stands_by) throw new StoreError("unavailable", "the PostgreSQL server is a standby: it takes no writes");
}
