/** One connection of one line: its life, from opening its keys to the socket's end, and what is asked of it meanwhile. */
import { type BinaryNode, S_WHATSAPP_NET } from "@whiskeysockets/baileys";
import { detached, errorName } from "../../base/detached.ts";
import { within } from "../../base/within.ts";
import { EgressError } from "../../egress/egress_error.ts";
import { SealError } from "../../store/seal.ts";
import type { CloseReason, Connection, ConnectionEvents } from "../connection.ts";
import type { OpenOptions } from "../network.ts";
import { NetworkRefusal } from "../network_error.ts";
import type { Outgoing, Prepared } from "../outgoing.ts";
import { PasskeyNotRequested } from "../passkey.ts";
import { isLinked, openAuthState } from "./auth_state.ts";
import { closeReason, reasonOf, VERSION_REFUSED } from "./close_reason.ts";
import { makeCause } from "./incoming/cause.ts";
import { takeFramesInTurn } from "./incoming/frames.ts";
import { type Journal, makeJournal } from "./incoming/journal.ts";
import { identityOf, ownJids } from "./jids.ts";
import type { Pairing } from "./linking/pairing.ts";
import { cut, type LineSocket, openSocket, type SocketGround, type Way } from "./socket.ts";
import { watchVitals } from "./vitals.ts";
import type { WebVersion } from "./web_version.ts";

/** Without a frame for so long (two pings unanswered) the socket is half-open: noticed within 50 s, rounds included. */
const SILENCE_MS = 42_000;
/** From the handshake to the login, key upload included. */
const LOGIN_MS = 60_000;
const CONNECT_MS = 20_000;
const UNLINK_MS = 5_000;
/** A socket that does not close politely in this time is cut. */
const CLOSE_MS = 1_000;

/** What every connection of a network shares. */
interface Shared extends SocketGround {
  version: () => Promise<WebVersion>;
  /** The network refused the version: the next one is asked for anew. True when it makes sense to try it at once. */
  versionRefused(lineId: string): boolean;
  /** Whether the line may be connected anew because it hears nothing: once in a while, for it may not help. */
  mayComplain(lineId: string): boolean;
  /** Calls `look` every few seconds, all lines' together; the returned function ends it. */
  rounds(look: () => void): () => void;
}

interface LineConnection extends Connection {
  /** Resolves when the connection has ended and writes nothing any more. */
  readonly ended: Promise<void>;
}

/** Begins to connect as soon as `previous` (the line's last connection) has let go of the keys. */
export function connectLine(
  shared: Shared,
  options: OpenOptions & { previous: Promise<void>; way: Promise<Way> },
  events: ConnectionEvents,
): LineConnection {
  const { runtime, kv, seal } = shared;
  const { clock } = runtime;
  const { lineId } = options;
  const log = runtime.log.child({ lineId });
  const ended = Promise.withResolvers<void>();
  const cause = makeCause();
  let over = false;
  /** `logout` is under way: the network's own "logged out" is then what was asked for. */
  let unlinking = false;
  let loggedIn = false;
  let live: LineSocket | undefined;
  const vitals = watchVitals(clock);
  let proxyFailure: () => string | null = () => null;
  let cancelWatch = () => {};

  function finish(reason: CloseReason): void {
    if (over) return;
    over = true;
    loggedIn = false;
    cancelWatch();
    live?.pairing.stop();
    live?.standing.end();
    live?.sender.abandon();
    const handedOver = live?.inbox.close() ?? Promise.resolve();
    // Not within the call that found the end: the caller of `open` has its connection by then.
    queueMicrotask(() => events.closed(reason));
    const tornDown = detached(
      tearDown(handedOver),
      (failure) => log.error(failure, "a connection did not end cleanly"),
    );
    void tornDown.then(() => ended.resolve());
  }

  /** Ends the socket, and then the access to the keys. */
  async function tearDown(handedOver: Promise<void>): Promise<void> {
    await started;
    if (!live) return;
    const { socket, auth } = live;
    const closing = socket.end(undefined).catch(() => {});
    // A half-open socket never answers the closing handshake.
    if (await within(clock, CLOSE_MS, closing) === "late") cut(socket);
    // A receiver that hangs holds up the end no longer than this: it gets the message again.
    await within(clock, CLOSE_MS, handedOver);
    await auth.close();
  }

  /** Nothing may reach the network about a message that is not on disk. */
  function broken(): void {
    if (live) cut(live.socket);
    finish({ kind: "unavailable", code: null, detail: "The storage refused an incoming message." });
  }

  async function start(): Promise<void> {
    await options.previous;
    const way = await options.way;
    if (way.proxy) proxyFailure = way.proxy.failure;
    const auth = await openAuthState({ kv, seal, lineId });
    const version = await shared.version();
    if (over) return await auth.close();
    const journal = makeJournal({ kv, seal, lineId, auth, runtime: { clock, log } }, {
      decrypted(entry) {
        vitals.decrypted();
        live?.inbox.decrypted(entry);
      },
      undecrypted(entry) {
        vitals.undecrypted();
        live?.inbox.undecrypted(entry);
      },
      broken,
    });
    const left = isLinked(auth.creds) ? await journal.leftovers() : { decrypted: [], undecrypted: [] };
    if (over) return await auth.close();
    const { restriction, pairingPhone } = options;
    live = openSocket(
      shared,
      { lineId, restriction, pairingPhone, auth, way, version, journal, left, cause, vitals },
      { isOpen: () => loggedIn, isOver: () => over, broken, finish, events },
    );
    listen(live, journal);
  }

  function listen(live: LineSocket, journal: Journal): void {
    const { socket, auth } = live;
    const { ws, ev } = socket;
    takeFramesInTurn(ws, cause.frame, (error) => {
      log.warn({ error: errorName(error) }, "what the network sent could not be read");
    });
    cancelWatch = clock.after(CONNECT_MS, () => finish(endOf(undefined)));
    ws.once("frame", () => {
      cancelWatch();
      // A login that does not come to its end; whoever still has to link takes the time that the refs give.
      if (isLinked(auth.creds)) cancelWatch = clock.after(LOGIN_MS, () => finish(closeReason("unavailable")));
    });
    ws.prependListener("CB:message", (stanza: BinaryNode) => {
      journal.watch(stanza);
      takeInTurn(stanza);
    });
    ev.on("creds.update", () => {
      // The library takes every change that names nobody for a new name, and tells it by a presence: "available".
      if (loggedIn) stayUnavailable(live);
      void detached(auth.saveCreds(), (failure) => over || log.error(failure, "credentials could not be saved"));
    });
    ev.on("connection.update", ({ connection, lastDisconnect }) => {
      if (over) return;
      if (connection === "open") {
        loggedIn = true;
        cancelWatch();
        watchSilence();
        events.open(identityOf(auth.creds));
        stayUnavailable(live);
        live.inbox.open();
        if (auth.creds.myAppStateKeyId) void live.settings.ask();
      }
      if (connection === "close") finish(unlinking ? closeReason("asked") : endOf(lastDisconnect?.error));
    });
  }

  /** Whoever is available keeps the owner's phone from ringing; the library leaves it at that until it knows a name. */
  function stayUnavailable({ socket }: LineSocket): void {
    const sent = socket.sendNode({ tag: "presence", attrs: { type: "unavailable" } });
    void detached(sent, (failure) => log.debug(failure, "the line's presence could not be told"));
  }

  /** What does not come through the proxy is the proxy's doing. */
  function endOf(error: unknown): CloseReason {
    const reason = reasonOf(error);
    if (reason.code === VERSION_REFUSED && shared.versionRefused(lineId)) return { ...reason, retryAfterMs: 0 };
    const detail = reason.code === null ? proxyFailure() : null;
    return detail === null ? reason : { ...reason, detail };
  }

  /**
   * Ends a logged-in connection that went silent: the library would wait for the peer's goodbye. One that answers and yet
   * hears nothing is opened anew once.
   */
  function watchSilence(): void {
    let complained: string | null = null;
    cancelWatch = shared.rounds(() => {
      if (clock.now() - (vitals.vitals.lastFrameAt ?? 0) > SILENCE_MS) return finish(closeReason("lost"));
      const complaint = vitals.complaint();
      if (complaint !== null && shared.mayComplain(lineId)) {
        return finish({ ...closeReason("lost"), detail: complaint });
      }
      // Another connection did not help: people have to know.
      if (complaint !== complained) events.degraded(complaint);
      complained = complaint;
    });
  }

  const started = start().catch((error) => {
    log.error({ error: errorName(error) }, "a connection could not be opened");
    const detail = error instanceof EgressError
      ? `The proxy can't be used: ${error.message}.`
      : error instanceof SealError
      ? "The stored credentials do not fit the secret key."
      : "The storage failed.";
    finish({ kind: "unavailable", code: null, detail });
  });

  function open(): LineSocket {
    if (!live || !loggedIn) {
      throw new NetworkRefusal("The session is not connected to the messaging network.");
    }
    return live;
  }

  /** A part of the port; each call of it as the open connection has it, or refused. */
  function whileOpen<Part extends keyof LineSocket["talk"]>(part: Part): Connection[Part] {
    type Call = (...given: unknown[]) => Promise<unknown>;
    return new Proxy({} as Connection[Part], {
      get: (_, name) => (...given: unknown[]) =>
        cause.own(async () => await (open().talk[part] as unknown as Record<string | symbol, Call>)[name]!(...given)),
    });
  }

  function linking(): Pairing {
    if (!live || over) throw new PasskeyNotRequested();
    return live.pairing;
  }

  async function prepare({ sender }: LineSocket, message: Outgoing, signal: AbortSignal): Promise<Prepared> {
    const prepared = await cause.own(() => sender.prepare(message, signal));
    if (prepared.kind !== "ready") return prepared;
    const { keep, type, leavesNext, send } = prepared;
    const own = <Answer>(run: () => Answer) => () => cause.own(run);
    return { kind: "ready", keep, type: own(type), leavesNext: own(leavesNext), send: own(send) };
  }

  async function end(): Promise<void> {
    finish(closeReason("asked"));
    await ended.promise;
  }

  return {
    ended: ended.promise,
    prepare: (message, signal) =>
      live && loggedIn
        ? prepare(live, message, signal)
        : Promise.resolve({ kind: "hold", detail: "The line is not connected." }),
    allows: async (to) => live ? await cause.own(() => live!.standing.allows(to)) : true,
    async health() {
      const { lastFrameAt, lastReceivedAt, lastSentAt, undecryptable } = vitals.vitals;
      const [pingMs, newChats] = live && loggedIn
        ? await Promise.all([vitals.ping(live.socket), live.standing.newChats()])
        : [null, null];
      const announced = live?.version ?? await shared.version();
      const webVersion = { ...announced, version: announced.version.join(".") };
      return { lastFrameAt, lastReceivedAt, lastSentAt, pingMs, newChats, undecryptable, webVersion };
    },
    async signPasskey(assertion) {
      await linking().sign(assertion);
    },
    async confirmPasskey() {
      await linking().confirm();
    },
    checkNumber: async (number) => await cause.own(() => open().recipients.check(number)),
    groups: whileOpen("groups"),
    contacts: whileOpen("contacts"),
    chats: whileOpen("chats"),
    close: end,
    async logout() {
      unlinking = true;
      if (live && loggedIn) await within(clock, UNLINK_MS, unlink(live)).catch(() => {});
      await end();
    },
  };
}

async function unlink({ socket, auth }: LineSocket): Promise<void> {
  const device = { tag: "remove-companion-device", attrs: { jid: ownJids(auth.creds).id, reason: "user_initiated" } };
  await socket.query({ tag: "iq", attrs: { to: S_WHATSAPP_NET, type: "set", xmlns: "md" }, content: [device] });
}

/**
 * The library takes messages that were missed one after another, and those that come meanwhile beside them: they would
 * overtake. Marked as missed, every message waits for its turn, so that a chat keeps its order.
 */
function takeInTurn(message: BinaryNode): void {
  message.attrs.offline ??= "0";
}
