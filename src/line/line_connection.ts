/**
 * The connection of a line, at most one at a time: opens it, closes it, and unlinks the device on the network. Reports
 * of the current connection go to the line's session, which decides what follows.
 */
import { settledWithin, within } from "../base/within.ts";
import type { Runtime } from "../runtime.ts";
import type { Seal } from "../store/seal.ts";
import type { CloseReason, Connection, ConnectionEvents, OwnIdentity } from "../whatsapp/connection.ts";
import type { Network, OpenOptions } from "../whatsapp/network.ts";
import { type Line, openedProxy } from "./line.ts";

/**
 * How long closing and log-out may take on the network, and how long an offline line may
 * take to log in for its log-out.
 */
const CLOSE_WITHIN_MS = 5_000;
const UNLINK_WITHIN_MS = 15_000;

interface LineConnectionDeps {
  network: Pick<Network, "open">;
  seal: Pick<Seal, "open">;
  runtime: Pick<Runtime, "clock" | "log">;
}

type Incoming = Pick<ConnectionEvents, "message" | "receipt" | "notice">;
type Reports = Omit<ConnectionEvents, keyof Incoming | "open" | "closed">;

/**
 * Handlers of the connection's reports, each run as a task of the line's queue. Reports of a connection that is no
 * longer current are dropped.
 */
type Heard = { [Name in keyof Reports]: (report: Parameters<Reports[Name]>[0]) => Promise<void> } & {
  /** The connection is logged in. */
  open: (identity: OwnIdentity, connection: Connection) => Promise<void>;
  /** The connection has ended. `lastedMs` is how long it was logged in, 0 if it never was. */
  closed: (reason: CloseReason, lastedMs: number) => Promise<void>;
};

interface LineConnectionOptions {
  lineId: string;
  /** Aborted when the gateway stops: no connection is opened from then on. */
  signal: AbortSignal;
  /** Adds a task to the line's queue. */
  soon: (task: () => Promise<void>) => void;
  heard: Heard;
  /** Handlers of incoming messages, receipts and notices, called at once and for any connection, current or not. */
  incoming: Incoming;
  /** Called at once when the current connection ends or is closed: nothing can be sent. */
  down: () => void;
}

export class LineConnection {
  readonly #deps: LineConnectionDeps;
  readonly #options: LineConnectionOptions;
  #present: Connection | null = null;
  /** Whether the current connection has reported its end: the reason it gave then counts, not a later suspicion. */
  #hasEnded = false;
  /** When the current connection logged in, Unix ms; null before that. */
  #openedAt: number | null = null;

  constructor(deps: LineConnectionDeps, options: LineConnectionOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** The current connection, logged in or not. */
  get present(): Connection | null {
    return this.#present;
  }

  /** The current connection if it is logged in, else null. */
  get loggedIn(): Connection | null {
    return this.#openedAt === null ? null : this.#present;
  }

  /** When the current connection logged in, Unix ms; null if none is logged in. */
  get openedAt(): number | null {
    return this.#openedAt;
  }

  /** Returns whether the connection is the current one and has not reported its end. */
  holds(connection: Connection): boolean {
    return this.#present === connection && !this.#hasEnded;
  }

  /** Opens a connection and makes it the current one. Throws SealError, and what the network's adapter throws. */
  async open(line: Line): Promise<void> {
    const { lineId, signal, soon, heard, incoming, down } = this.#options;
    if (signal.aborted) return;
    this.#openedAt = null;
    let opened: Connection | null = null;
    const hear = (task: (connection: Connection) => Promise<void>) =>
      soon(async () => {
        if (opened !== null && this.#present === opened) await task(opened);
      });
    const events: ConnectionEvents = {
      qr: (text) => hear(() => heard.qr(text)),
      pairingCode: (code) => hear(() => heard.pairingCode(code)),
      passkey: (request) => hear(() => heard.passkey(request)),
      linked: (identity) => hear(() => heard.linked(identity)),
      restricted: (restriction) => hear(() => heard.restricted(restriction)),
      degraded: (reason) => hear(() => heard.degraded(reason)),
      open: (identity) =>
        hear((connection) => {
          this.#openedAt = this.#deps.runtime.clock.now();
          return heard.open(identity, connection);
        }),
      closed: (reason) => {
        if (this.#present === opened) {
          this.#hasEnded = true;
          down();
        }
        hear(() => {
          const lastedMs = this.#openedAt === null ? 0 : this.#deps.runtime.clock.now() - this.#openedAt;
          this.#drop();
          return heard.closed(reason, lastedMs);
        });
      },
      ...incoming,
    };
    opened = await this.#deps.network.open({ lineId, ...this.#openOptions(line) }, events);
    if (signal.aborted) return await this.#inTime(opened.close());
    this.#present = opened;
    this.#hasEnded = false;
  }

  /** Closes the current connection, if any, and keeps the link. Later reports of that connection are dropped. */
  async close(): Promise<void> {
    const connection = this.#present;
    this.#drop();
    this.#options.down();
    if (connection) await this.#inTime(connection.close());
  }

  /**
   * Unlinks the device on the network, if it can be reached, and closes the connection. Throws the signal's reason if
   * the gateway stops before the network knows, and as `open` does.
   */
  async logout(line: Line): Promise<void> {
    const connection = this.loggedIn;
    if (!connection) {
      await this.close();
      if (line.linked) await this.#comeUpToUnlink(line);
      return;
    }
    this.#drop();
    this.#options.down();
    await this.#inTime(connection.logout());
  }

  /** Logs a paused or offline line in once more to unlink it; otherwise the phone would go on listing a dead device. */
  async #comeUpToUnlink(line: Line): Promise<void> {
    const { lineId, signal, incoming } = this.#options;
    const { clock, log } = this.#deps.runtime;
    const { promise: up, resolve } = Promise.withResolvers<boolean>();
    const connection = await this.#deps.network.open(
      { lineId, ...this.#openOptions(line), pairingPhone: null },
      {
        qr: () => resolve(false),
        pairingCode: () => resolve(false),
        passkey: () => resolve(false),
        linked: () => {},
        restricted: () => {},
        degraded: () => {},
        open: () => resolve(true),
        closed: () => resolve(false),
        ...incoming,
      },
    );
    if (await within(clock, UNLINK_WITHIN_MS, up, signal) === true) return await this.#inTime(connection.logout());
    if (signal.aborted) {
      await this.#inTime(connection.close());
      // The network does not know of the log-out yet, so the credentials must be kept.
      signal.throwIfAborted();
    }
    log.warn({ lineId }, "the network could not be informed that a line was unlinked");
    await this.#inTime(connection.close());
  }

  /** Throws SealError. */
  #openOptions(line: Line): Omit<OpenOptions, "lineId"> {
    const { accountId, pairingPhone, restriction } = line;
    return { accountId, pairingPhone, restriction: restriction ?? null, proxy: openedProxy(line, this.#deps.seal) };
  }

  #drop(): void {
    this.#present = null;
    this.#openedAt = null;
  }

  async #inTime(done: Promise<void>): Promise<void> {
    const { clock, log } = this.#deps.runtime;
    if (await settledWithin(clock, CLOSE_WITHIN_MS, done)) return;
    log.warn({ lineId: this.#options.lineId }, "a connection did not close in time");
  }
}
