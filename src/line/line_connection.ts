/**
 * A line's connection, at most one: opened, heard while it is the present one, closed, and unlinked on the network. What
 * is made of what it reports is the session's to say.
 */
import { settledWithin, within } from "../base/within.ts";
import type { Runtime } from "../runtime.ts";
import type { Seal } from "../store/seal.ts";
import type { CloseReason, Connection, ConnectionEvents, OwnIdentity } from "../whatsapp/connection.ts";
import type { Network, OpenOptions } from "../whatsapp/network.ts";
import { type Line, openedProxy } from "./line.ts";

/** How long a pause or log-out may take on the network, and a line that is offline to come up for its log-out. */
const CLOSE_WITHIN_MS = 5_000;
const UNLINK_WITHIN_MS = 15_000;

export interface LineConnectionDeps {
  network: Pick<Network, "open">;
  seal: Pick<Seal, "open">;
  runtime: Pick<Runtime, "clock" | "log">;
}

type Incoming = Pick<ConnectionEvents, "message" | "receipt" | "notice">;
type Reports = Omit<ConnectionEvents, keyof Incoming | "open" | "closed">;

/** What is done about a report, in its turn; a connection that is not the present one any more is not heard. */
type Heard = { [Name in keyof Reports]: (report: Parameters<Reports[Name]>[0]) => Promise<void> } & {
  /** It is logged in. */
  open: (identity: OwnIdentity, connection: Connection) => Promise<void>;
  /** It is gone; `lastedMs`: how long it was logged in, 0 when it never was. */
  closed: (reason: CloseReason, lastedMs: number) => Promise<void>;
};

interface LineConnectionOptions {
  lineId: string;
  /** The gateway stops: nothing more is opened. */
  signal: AbortSignal;
  /** Takes a task into the line's one queue. */
  soon: (task: () => Promise<void>) => void;
  heard: Heard;
  /** Of any connection, at once. */
  incoming: Incoming;
  /** Called at once when the present connection ends or is ended: nothing can be sent. */
  down: () => void;
}

export class LineConnection {
  readonly #deps: LineConnectionDeps;
  readonly #options: LineConnectionOptions;
  #present: Connection | null = null;
  /** Whether it has reported its end: that reason counts, whatever else is suspected of it. */
  #hasEnded = false;
  /** When the present connection logged in; null before. */
  #openedAt: number | null = null;

  constructor(deps: LineConnectionDeps, options: LineConnectionOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Logged in or not. */
  get present(): Connection | null {
    return this.#present;
  }

  /** The present one, while it is logged in. */
  get loggedIn(): Connection | null {
    return this.#openedAt === null ? null : this.#present;
  }

  /** When the present one logged in, Unix ms; null while there is none that did. */
  get openedAt(): number | null {
    return this.#openedAt;
  }

  /** Whether it is the present one, and has not reported its end. */
  holds(connection: Connection): boolean {
    return this.#present === connection && !this.#hasEnded;
  }

  /** Opens a connection, which is the present one from then on. Throws SealError and what the network's adapter throws. */
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

  /** Closes the present one, if there is one, and keeps the link. What it still reports is not heard any more. */
  async close(): Promise<void> {
    const connection = this.#present;
    this.#drop();
    this.#options.down();
    if (connection) await this.#inTime(connection.close());
  }

  /**
   * Unlinks the device on the network, as far as it can be reached, and closes. Throws the signal's reason when the
   * gateway stops before the network knows, and as `open` does.
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

  /** A paused or offline line logs in once more, so that the phone does not go on listing a dead device. */
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
      // The network does not know, so nothing may be forgotten.
      signal.throwIfAborted();
    }
    log.warn({ lineId }, "the network could not be informed that a line was unlinked");
    await this.#inTime(connection.close());
  }

  /** Throws SealError. */
  #openOptions(line: Line): Omit<OpenOptions, "lineId"> {
    const { pairingPhone, restriction } = line;
    return { pairingPhone, restriction: restriction ?? null, proxy: openedProxy(line, this.#deps.seal) };
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
