/**
 * Connections to vetted addresses, plain or TLS, and a pool of idle ones, so that a burst of webhook deliveries needs
 * one handshake rather than hundreds. A connection closed by the other side is detected and dropped; one that breaks
 * during a request fails that request. Nothing is ever sent twice.
 */
import { hostOf, portOf } from "../base/addresses.ts";
import { timeLimit } from "../base/within.ts";
import type { Clock } from "../runtime.ts";
import type { Deadline } from "./deadline.ts";
import { EgressError, reasonOf } from "./egress_error.ts";
import type { ByteConnection } from "./http1.ts";

/** How many addresses of a name are tried in turn, as long as nothing has been sent. */
const MAX_ADDRESSES = 3;
/** How long an address may take to accept the connection: while there are others to try, and the last. */
const CONNECT_MS = { each: 3_000, last: 15_000 };
/** Shorter than the keep-alive time of servers (5 s and more), so that a request rarely meets a closing connection. */
const IDLE_MS = 2_000;
/** Size of the pending read on an idle connection; most responses to the next request fit into it. */
const AHEAD_BYTES = 1024;
/** Most idle connections per origin. */
const MAX_IDLE = 32;

interface ConnectOptions {
  /** Vetted. */
  addresses: readonly string[];
  caCerts: string[];
  deadline: Deadline;
  clock: Clock;
}

/** Connects to the first of the addresses that answers. For https the certificate must match the host. */
export async function connect(url: URL, options: ConnectOptions): Promise<ReusableConnection> {
  const { caCerts, deadline } = options;
  const port = portOf(url);
  const addresses = options.addresses.slice(0, MAX_ADDRESSES);
  let failure: unknown;
  for (const address of addresses) {
    try {
      const limitMs = address === addresses.at(-1) ? CONNECT_MS.last : CONNECT_MS.each;
      const plain = await dial({ hostname: address, port }, { ...options, limitMs });
      const connection = url.protocol === "http:"
        ? plain
        : await secure(plain, { hostname: hostOf(url), caCerts, deadline });
      return new ReusableConnection(connection, address);
    } catch (error) {
      if (error instanceof EgressError) throw error;
      failure = error;
    }
  }
  const refused = failure instanceof Deno.errors.ConnectionRefused;
  throw new EgressError("unreachable", refused ? "the connection was refused" : "the host cannot be reached", {
    cause: failure,
  });
}

/** Opens a connection; the attempt ends with the time limit, and with the request. */
async function dial(
  target: Deno.ConnectOptions,
  { deadline, clock, limitMs }: Pick<ConnectOptions, "deadline" | "clock"> & { limitMs: number },
): Promise<Deno.TcpConn> {
  const givenUp = new AbortController();
  deadline.onStop(() => givenUp.abort());
  using limit = timeLimit(clock, limitMs, givenUp.signal);
  return await deadline.race(Deno.connect({ ...target, signal: limit.signal }), (late) => late.close());
}

async function secure(
  plain: Deno.TcpConn,
  { hostname, caCerts, deadline }: { hostname: string; caCerts: string[]; deadline: Deadline },
): Promise<ByteConnection> {
  const secured = await Deno.startTls(plain, { hostname, caCerts }).catch((error) => {
    // A name that is valid in a URL but not for a certificate: the connection is still open.
    closeQuietly(plain);
    throw tlsFailed(error);
  });
  try {
    await deadline.race(secured.handshake());
    return secured;
  } catch (error) {
    secured.close();
    throw error instanceof EgressError ? error : tlsFailed(error);
  }
}

function tlsFailed(error: unknown): EgressError {
  return new EgressError("tls_failed", `the TLS handshake failed: ${reasonOf(error)}`, { cause: error });
}

function closeQuietly(connection: ByteConnection): void {
  try {
    connection.close();
  } catch {
    // Already taken over, or closed by the other side.
  }
}

/** A connection to a vetted address that can be watched for its end while it is idle. */
export class ReusableConnection implements ByteConnection {
  readonly address: string;
  readonly #connection: ByteConnection;
  #ahead: Promise<Uint8Array | null> | null = null;

  constructor(connection: ByteConnection, address: string) {
    this.#connection = connection;
    this.address = address;
  }

  /**
   * Resolves when the other side closes the connection or sends unsolicited bytes; the next `read` continues from
   * there.
   */
  async disturbed(): Promise<void> {
    this.#ahead = this.#readAhead();
    await this.#ahead.catch(() => {});
  }

  async #readAhead(): Promise<Uint8Array | null> {
    const bytes = new Uint8Array(AHEAD_BYTES);
    const read = await this.#connection.read(bytes);
    return read === null ? null : bytes.subarray(0, read);
  }

  async read(into: Uint8Array): Promise<number | null> {
    if (this.#ahead === null) return await this.#connection.read(into);
    const bytes = await this.#ahead;
    const given = bytes?.subarray(0, into.length) ?? null;
    const rest = bytes?.subarray(into.length);
    this.#ahead = rest?.length ? Promise.resolve(rest) : null;
    if (given === null) return null;
    into.set(given);
    return given.length;
  }

  write(bytes: Uint8Array): Promise<number> {
    return this.#connection.write(bytes);
  }

  close(): void {
    closeQuietly(this.#connection);
  }
}

export class IdleConnections {
  readonly #clock: Clock;
  /** Idle connections by origin, each with the function that ends its wait. */
  readonly #idle = new Map<string, Map<ReusableConnection, () => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes an idle connection to the origin at one of the addresses; null if there is none. */
  take(origin: string, addresses: readonly string[]): ReusableConnection | null {
    for (const [connection, stopWaiting] of this.#idle.get(origin) ?? []) {
      if (!addresses.includes(connection.address)) continue;
      stopWaiting();
      return connection;
    }
    return null;
  }

  /** Adds a connection whose last response has been read to its end. */
  put(origin: string, connection: ReusableConnection): void {
    const waiting = this.#idle.get(origin) ?? new Map();
    if (waiting.size >= MAX_IDLE) return connection.close();
    const drop = () => {
      if (waiting.get(connection) !== stopWaiting) return;
      stopWaiting();
      connection.close();
    };
    const cancelTimer = this.#clock.after(IDLE_MS, drop);
    const stopWaiting = () => {
      cancelTimer();
      waiting.delete(connection);
      if (waiting.size === 0) this.#idle.delete(origin);
    };
    waiting.set(connection, stopWaiting);
    this.#idle.set(origin, waiting);
    void connection.disturbed().then(drop);
  }
}
