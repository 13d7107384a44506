/**
 * A process's connections to PostgreSQL, each to a writable server; one pool for each server named in the URL. When a
 * connection turns out to lead to a server that is gone or was replaced, idle ones are dropped too: otherwise each
 * would cost a timeout of its own. When the server accepts no further connections, the existing ones are shared.
 */
// @ts-types="@types/pg"
import pg from "pg";
// @ts-types="@types/pg"
import type { ClientBase } from "pg";
import { urlsOfHosts } from "../../base/database_url.ts";
import type { Runtime } from "../../runtime.ts";
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
  const servers = serversOf(url);
  const pools = servers.urls.map((one) => openPool(one, (client) => servers.assertWritable(client), runtime));
  const connect = servers.firstWritable(pools.map((pool) => pool.connect));

  /** Runs with a connection. One that failed is closed: it may still be in a transaction. Throws as `query` does. */
  async function withClient<T>(run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await connect();
    let failure: unknown;
    try {
      return await run(client);
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      client.release(failure !== undefined);
      if (isOfOtherServer(failure)) { for (const pool of pools) pool.dropIdle(); }
    }
  }

  return {
    /** Returns a connection for several statements, which must be released. Throws as `query` does. */
    connect,
    withClient,
    /** Runs one statement. Throws the errors of the server and of its client unchanged. */
    async query<Row extends pg.QueryResultRow>(sql: string, values: unknown[]): Promise<Row[]> {
      return (await withClient((client) => client.query<Row>(sql, values))).rows;
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

  function continueWithThese(): void {
    pool.options.max = pool.totalCount;
    log.warn({ connections: pool.totalCount }, "PostgreSQL refuses further connections: the open ones are shared");
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
          continueWithThese();
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

/** The server answers, but must not be written to, and its data may be stale. */
class NotWritable extends Error {}

/**
 * The servers named in a URL, `postgres://…` with one or more hosts: a primary and its standbys. After a standby is
 * promoted, it is the one that is used.
 */
export function serversOf(url: string) {
  /** One URL per server. */
  const urls = urlsOfHosts(url).map(plain);

  /**
   * Throws NotWritable for a standby, whose answers are stale and which accepts no commit. Among several servers it
   * also throws for one that is set to read-only, which is how operators retire a primary that has a successor. A
   * single read-only server goes on serving reads.
   */
  async function assertWritable(client: ClientBase): Promise<void> {
    const { rows: [server] } = await client.query(
      "select pg_is_in_recovery() as stands_by, current_setting('transaction_read_only') = 'on' as reads_only",
    );
    if (server.stands_by) throw new NotWritable("it is a standby and takes no writes");
    if (server.reads_only && urls.length > 1) throw new NotWritable("it is set to read only");
  }

  /**
   * Returns a function that connects to the first writable server, beginning with the last one used. `ways` holds a
   * connector for each server, which throws if the server is not writable. If all fail, the function throws the only
   * server's error, or one that lists the reason for each.
   */
  function firstWritable<Client>(ways: readonly (() => Promise<Client>)[]): () => Promise<Client> {
    let last = 0;
    return async () => {
      const failures: Error[] = [];
      for (const n of ways.map((_, i) => (last + i) % ways.length)) {
        try {
          const client = await ways[n]!();
          last = n;
          return client;
        } catch (error) {
          // Next time begin with the standby: it may have been promoted, whereas a dead server costs a timeout.
          if (error instanceof NotWritable) last = n;
          failures[n] = error instanceof Error ? error : new Error(String(error));
        }
      }
      if (ways.length === 1) throw failures[0];
      const reasons = urls.map((url, n) => `${new URL(url).host}: ${failures[n]!.message}`);
      throw new Error(`no server takes writes (${reasons.join("; ")})`);
    };
  }

  return { urls, assertWritable, firstWritable };
}

/** The driver treats these modes as `verify-full` anyway, but prints a warning each time. */
function plain(url: string): string {
  if (/[?&]uselibpqcompat=true/.test(url)) return url;
  return url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, "$1verify-full");
}
