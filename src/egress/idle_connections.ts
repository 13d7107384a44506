/**
 * Connections that wait for another request to the same place: a webhook in a burst then pays for one handshake, not for
 * hundreds. A connection that the other side has closed is noticed and dropped; one that breaks under a request fails
 * that request. Nothing is ever sent a second time.
 */
import type { Clock } from "../runtime.ts";
import type { ByteConnection } from "./http1.ts";

/** Shorter than servers wait (5 s and more), so that a request hardly ever meets a connection that is being closed. */
const IDLE_MS = 2_000;
/** Read while a connection waits: most answers to the next request come whole. */
const AHEAD_BYTES = 1024;
/** For one place. */
const MAX_IDLE = 32;

/** A connection to a vetted address that can be watched for its end while nobody uses it. */
export class ReusableConnection implements ByteConnection {
  readonly address: string;
  readonly #connection: ByteConnection;
  #ahead: Promise<Uint8Array | null> | null = null;

  constructor(connection: ByteConnection, address: string) {
    this.#connection = connection;
    this.address = address;
  }

  /** Resolves when the other side ends the connection or sends something unasked; the next `read` reads on from there. */
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
    try {
      this.#connection.close();
    } catch {
      // Closed by the other side already.
    }
  }
}

export class IdleConnections {
  readonly #clock: Clock;
  /** By origin, each with what ends its waiting. */
  readonly #idle = new Map<string, Map<ReusableConnection, () => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A waiting connection to the origin at one of the addresses, or null. */
  take(origin: string, addresses: readonly string[]): ReusableConnection | null {
    for (const [connection, stopWaiting] of this.#idle.get(origin) ?? []) {
      if (!addresses.includes(connection.address)) continue;
      stopWaiting();
      return connection;
    }
    return null;
  }

  /** Keeps a connection whose last answer has been read to its end. */
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
