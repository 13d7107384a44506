/**
 * The life of one line's socket, from opening its keys to releasing them: it connects, logs in, is watched, and ends.
 */
import type { BinaryNode } from "@whiskeysockets/baileys";
import { detached, errorName, retry } from "../../base/retry.ts";
import { within } from "../../base/within.ts";
import { EgressError } from "../../egress/egress_error.ts";
import type { Log } from "../../runtime.ts";
import { STORE_PAUSE_MS } from "../../store/kv.ts";
import { SealError } from "../../store/seal.ts";
import type { CloseReason, ConnectionEvents } from "../connection.ts";
import type { Encounters } from "../encounters.ts";
import type { OpenOptions } from "../network.ts";
import { isLinked, openAuthState } from "./auth_state.ts";
import { renewKeys } from "./renewed_keys.ts";
import { closeReason, reasonOf, VERSION_REFUSED } from "./close_reason.ts";
import { makeCause } from "./incoming/cause.ts";
import { Decryption } from "./incoming/decryption.ts";
import { correctMessage, serializeFrames } from "./incoming/stanzas.ts";
import { Journal } from "./incoming/journal.ts";
import { identityOf, ownJids } from "./jids.ts";
import { cut, type LineSocket, openSocket, type SocketGround, type Way } from "./socket.ts";
import { iq } from "./stanza.ts";
import { type Liveness, watchLiveness } from "./liveness.ts";
import type { makeWebVersions } from "./web_version.ts";

/**
 * Without a frame for this long (two unanswered pings) the socket is half-open. Noticed within 50 s, since checks are
 * periodic.
 */
const SILENCE_MS = 42_000;
/** From the handshake to the login, including the upload of keys. */
const LOGIN_MS = 60_000;
const CONNECT_MS = 20_000;
const UNLINK_MS = 5_000;
/** A socket that does not close gracefully within this time is cut. */
const CLOSE_MS = 1_000;

/** What all connections of a network share. */
export interface Shared extends SocketGround {
  encounters: Encounters;
  versions: Pick<ReturnType<typeof makeWebVersions>, "now" | "known">;
  /** The network refused the version, so it will be fetched again. Returns true if an immediate retry makes sense. */
  versionRefused(lineId: string): boolean;
  /** Whether the line may be reconnected because it receives nothing. Only occasionally, because it may not help. */
  mayComplain(lineId: string): boolean;
  /** Calls `look` every few seconds, on a timer shared by all lines. The returned function stops it. */
  rounds(look: () => void): () => void;
}

/** `previous` resolves when the line's last connection has released the keys. */
export type LifeOptions = OpenOptions & { previous: Promise<void>; way: Promise<Way> };

export class SocketLife {
  readonly cause = makeCause();
  readonly signs: Liveness;
  readonly #shared: Shared;
  readonly #options: LifeOptions;
  readonly #events: ConnectionEvents;
  readonly #log: Log;
  readonly #ended = Promise.withResolvers<void>();
  readonly #started: Promise<void>;
  #phase: "connecting" | "open" | "over" = "connecting";
  /** A `logout` is in progress, so the network's "logged out" is the expected outcome. */
  #isUnlinking = false;
  #parts: LineSocket | null = null;
  #proxyFailure: () => string | null = () => null;
  /** Cancels the current watch: for the connect, the login, or silence. */
  #cancelWatch = () => {};

  /** Starts to connect as soon as `previous` has resolved. */
  constructor(shared: Shared, options: LifeOptions, events: ConnectionEvents) {
    this.#shared = shared;
    this.#options = options;
    this.#events = events;
    this.#log = shared.runtime.log.child({ lineId: options.lineId });
    this.signs = watchLiveness(shared.runtime.clock);
    this.#started = this.#start().catch((error) => {
      this.#log.error({ error: errorName(error) }, "a connection could not be opened");
      const detail = error instanceof EgressError
        ? `The proxy can't be used: ${error.message}.`
        : error instanceof SealError
        ? "The stored credentials do not match the secret key."
        : "The storage failed.";
      this.#finish({ kind: "unavailable", code: null, detail });
    });
  }

  /** Resolves when the connection has ended and no longer writes. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get isOver(): boolean {
    return this.#phase === "over";
  }

  /** The parts of the socket; null before it exists. Still set after it has ended. */
  get parts(): LineSocket | null {
    return this.#parts;
  }

  /** The parts of the socket while it is logged in; otherwise null. */
  get open(): LineSocket | null {
    return this.#phase === "open" ? this.#parts : null;
  }

  /** Closes the socket and keeps the link. */
  async close(): Promise<void> {
    this.#finish(closeReason("asked"));
    await this.ended;
  }

  /** Unlinks the device on the network, then closes. Resolves even if the network could not be informed. */
  async logout(): Promise<void> {
    this.#isUnlinking = true;
    if (this.open) await within(this.#shared.runtime.clock, UNLINK_MS, unlink(this.open)).catch(() => {});
    await this.close();
  }

  async #start(): Promise<void> {
    const { previous, lineId } = this.#options;
    const { kv, seal, runtime: { clock } } = this.#shared;
    await previous;
    const way = await this.#options.way;
    if (way.proxy) this.#proxyFailure = way.proxy.failure;
    await renewKeys({ kv, seal, lineId, runtime: { clock } });
    const auth = await openAuthState({ kv, seal, lineId });
    const version = await this.#shared.versions.now(way.proxy);
    this.#shared.encounters.note("version", `${version.version} (${version.source})`);
    if (this.isOver) return await auth.close();
    const liveness = this.signs;
    const journal = new Journal({ kv, seal, lineId }, auth, clock);
    const decryption = new Decryption({
      journal,
      auth,
      decrypted: (entry) => {
        liveness.decrypted();
        this.#parts?.inbox.decrypted(entry);
      },
      undecrypted: (entry) => {
        liveness.undecrypted();
        this.#parts?.inbox.undecrypted(entry);
      },
      broken: () => this.#broken(),
    });
    const left = isLinked(auth.creds) ? await journal.leftovers() : { decrypted: [], undecrypted: [] };
    if (this.isOver) return await auth.close();
    this.#parts = openSocket(
      this.#shared,
      { ...this.#options, auth, way, version, decryption, journal, left, cause: this.cause, liveness },
      {
        isOpen: () => this.#phase === "open",
        isOver: () => this.isOver,
        broken: () => this.#broken(),
        finish: (reason) => this.#finish(reason),
        events: this.#events,
      },
    );
    this.#listen(this.#parts, decryption);
  }

  #listen({ socket: { ws, ev, messageMutex }, auth }: LineSocket, decryption: Decryption): void {
    const { clock } = this.#shared.runtime;
    serializeFrames(ws, this.cause.frame, (error) => {
      this.#log.warn({ error: errorName(error) }, "a frame from the network could not be read");
    });
    this.#cancelWatch = clock.after(CONNECT_MS, () => this.#finish(this.#endOf(undefined)));
    ws.once("frame", () => {
      this.#cancelWatch();
      // A linked line must complete its login in time. For an unlinked one, the lifetime of the QR refs is the limit.
      const late = () => this.#finish(closeReason("unavailable"));
      if (isLinked(auth.creds)) this.#cancelWatch = clock.after(LOGIN_MS, late);
    });
    ws.prependListener("CB:message", (stanza: BinaryNode) => {
      const noted = decryption.watch(stanza);
      // Taking the message lock before the library does makes its ack wait until this is noted.
      void detached(messageMutex.mutex(() => noted), (failure) => {
        this.#log.warn(failure, "an unreadable message could not be recorded");
      });
      correctMessage(stanza, auth.creds);
    });
    ev.on("creds.update", () => {
      // The library takes every update without a name for a change of name, and sends a presence that makes the line
      // available.
      this.open?.presence.repeat();
      // Stale credentials would make the next connection reuse key ids.
      const saved = retry(() => auth.saveCreds(), { clock, pauseMs: STORE_PAUSE_MS, isTransient: () => !this.isOver });
      void detached(saved, (failure) => {
        if (!this.isOver) this.#log.error(failure, "credentials could not be saved");
      });
    });
    ev.on("connection.update", ({ connection, lastDisconnect }) => {
      if (this.isOver) return;
      if (connection === "open") this.#loggedIn(this.#parts!);
      if (connection === "close") {
        this.#finish(this.#isUnlinking ? closeReason("asked") : this.#endOf(lastDisconnect?.error));
      }
    });
  }

  #loggedIn(parts: LineSocket): void {
    const { auth: { creds }, inbox, settings, restrictions, presence } = parts;
    this.#phase = "open";
    this.#cancelWatch();
    this.#watch(parts);
    this.#events.open(identityOf(creds));
    // The library itself sends no presence until it knows a name.
    presence.repeat();
    inbox.open();
    if (creds.myAppStateKeyId) void settings.ask();
    void restrictions.loggedIn();
  }

  /**
   * Ends a logged-in connection that has gone silent: the library would wait for the peer's close. A connection that
   * answers pings but receives nothing is reopened once.
   */
  #watch({ presence, backlog }: LineSocket): void {
    const { runtime: { clock }, mayComplain, rounds } = this.#shared;
    let complained: string | null = null;
    this.#cancelWatch = rounds(() => {
      presence.look();
      backlog.look();
      void this.#writeEncounters();
      if (clock.now() - (this.signs.liveness.lastFrameAt ?? 0) > SILENCE_MS) return this.#finish(closeReason("lost"));
      const complaint = this.signs.complaint();
      if (complaint !== null && mayComplain(this.#options.lineId)) {
        return this.#finish({ ...closeReason("lost"), detail: complaint });
      }
      // Reconnecting did not help, so the owner has to know.
      if (complaint !== complained) this.#events.degraded(complaint);
      complained = complaint;
    });
  }

  /** Blames the proxy if it has reported a failure and the network gave no code. */
  #endOf(error: unknown): CloseReason {
    const reason = reasonOf(error);
    const isRefused = reason.code === VERSION_REFUSED && this.#shared.versionRefused(this.#options.lineId);
    if (isRefused) return { ...reason, retryAfterMs: 0 };
    const detail = reason.code === null ? this.#proxyFailure() : null;
    return detail === null ? reason : { ...reason, detail };
  }

  /** Ends the connection at once: nothing may reach the network about a message that is not on disk. */
  #broken(): void {
    if (this.#parts) cut(this.#parts.socket);
    this.#finish({ kind: "unavailable", code: null, detail: "The storage did not accept an incoming message." });
  }

  #finish(reason: CloseReason): void {
    if (this.isOver) return;
    this.#phase = "over";
    this.#cancelWatch();
    const { kind, code } = reason;
    if (kind !== "asked") this.#shared.encounters.note("closed", code === null ? kind : `${kind} ${code}`);
    this.#parts?.pairing.stop();
    this.#parts?.restrictions.end();
    this.#parts?.sender.relay.abandon();
    const handedOver = this.#parts?.inbox.close() ?? Promise.resolve();
    // Deferred, so that the caller of `open` has its connection by the time it receives the event.
    queueMicrotask(() => this.#events.closed(reason));
    void this.#end(handedOver);
  }

  async #end(handedOver: Promise<void>): Promise<void> {
    await detached(this.#tearDown(handedOver), (failure) => {
      this.#log.error(failure, "a connection did not end cleanly");
    });
    void this.#writeEncounters();
    this.#ended.resolve();
  }

  async #writeEncounters(): Promise<void> {
    await detached(this.#shared.encounters.write(), (failure) => {
      this.#log.debug(failure, "what the line met on the network could not be counted");
    });
  }

  /** Ends the socket, then the access to the keys. */
  async #tearDown(handedOver: Promise<void>): Promise<void> {
    const { clock } = this.#shared.runtime;
    await this.#started;
    if (!this.#parts) return;
    const { socket, auth } = this.#parts;
    const closing = socket.end(undefined).catch(() => {});
    // A half-open socket never answers the closing handshake.
    if (await within(clock, CLOSE_MS, closing) === "late") cut(socket);
    // A receiver that hangs delays the end no longer than this; it gets the message again.
    await within(clock, CLOSE_MS, handedOver);
    await auth.close();
  }
}

async function unlink({ socket, auth }: LineSocket): Promise<void> {
  const device = { tag: "remove-companion-device", attrs: { jid: ownJids(auth.creds).id, reason: "user_initiated" } };
  await socket.query(iq({ type: "set", xmlns: "md" }, device));
}
