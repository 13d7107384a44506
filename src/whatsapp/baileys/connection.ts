/**
 * One connection of one line: from opening its keys to the socket's end. Everything that the line does on the network
 * is wired together here; each part has its own file.
 */
import type { Agent } from "node:https";
import {
  type AuthenticationCreds,
  type BinaryNode,
  Browsers,
  DEFAULT_CONNECTION_CONFIG,
  jidNormalizedUser,
  makeWASocket,
  S_WHATSAPP_NET,
  type SocketConfig,
  type WASocket,
} from "@whiskeysockets/baileys";
import type { Runtime } from "../../runtime.ts";
import type { Inspect } from "../../inspect/inspector.ts";
import type { Kv } from "../../store/kv.ts";
import { EgressError } from "../../egress/egress_error.ts";
import type { Proxy } from "../../egress/proxy.ts";
import { type Seal, SealError } from "../../store/seal.ts";
import type { CloseReason, Connection, ConnectionEvents, OwnIdentity } from "../connection.ts";
import type { OpenOptions } from "../network.ts";
import { NetworkRefusal } from "../network_error.ts";
import type { Outgoing, Prepared } from "../outgoing.ts";
import { PasskeyNotRequested } from "../passkey.ts";
import { type AuthState, isLinked, openAuthState } from "./auth_state.ts";
import { makeCause } from "./incoming/cause.ts";
import { closeReason, codeRefused, distrustOf, reasonOf, VERSION_REFUSED } from "./close_reason.ts";
import { within } from "../../base/within.ts";
import { digitsOf } from "./incoming/decode.ts";
import { takeFramesInTurn } from "./incoming/frames.ts";
import { makeDevices } from "./outgoing/devices.ts";
import { type GroupCache, makeGroupCache } from "./outgoing/group_cache.ts";
import { makeChats } from "./chats/chats.ts";
import { makeContacts, makeNames } from "./chats/contacts.ts";
import { makeGroups } from "./chats/groups.ts";
import { SALT_ID, takeHistory } from "./incoming/history.ts";
import { type Inbox, makeInbox } from "./incoming/inbox.ts";
import { findReceived } from "./incoming/originals.ts";
import { incomingMedia } from "./incoming/media.ts";
import { type Journal, makeJournal } from "./incoming/journal.ts";
import type { MediaHost } from "./media_host.ts";
import { uploadTo } from "./outgoing/media_upload.ts";
import { makePhoneOf, type PhoneOf } from "./incoming/numbers.ts";
import { takeNotices } from "./incoming/notices.ts";
import { type FindPoll, makeFindPoll } from "./incoming/polls.ts";
import { CodeRefused } from "./linking/code.ts";
import { type Pairing, takeOverPairing } from "./linking/pairing.ts";
import { leaveFiles } from "./repairs/app_state.ts";
import { countLogin } from "./repairs/logins.ts";
import { quietLogger } from "./repairs/quiet_logger.ts";
import { keepTrustedTokens } from "./repairs/trusted_tokens.ts";
import { type OwnJids, receiptsOf } from "./incoming/receipts.ts";
import { makeSettings, type Settings } from "./incoming/settings.ts";
import { type CountStray, takeStrays } from "./incoming/strays.ts";
import { makeRecipients, type Recipients } from "./outgoing/recipients.ts";
import { reportRefusals } from "./incoming/refusals.ts";
import { makeSender, type Sender, type SenderOptions } from "./outgoing/sender.ts";
import { makeSentStore } from "./outgoing/sent_store.ts";
import { makeStanding, type Standing } from "./outgoing/standing.ts";
import { watchVitals } from "./vitals.ts";
import type { WebVersion } from "./web_version.ts";

/** The library pings this often; an answer is a frame, and a frame shows that the other end lives. */
const PING_MS = 20_000;
/** Without a frame for so long (two pings unanswered) the socket is half-open: noticed within 50 s. */
const SILENCE_MS = 42_000;
const WATCH_MS = 5_000;
/** From the handshake to the login, key upload included. */
const LOGIN_MS = 60_000;
const CONNECT_MS = 20_000;
const QUERY_MS = 30_000;
const UNLINK_MS = 5_000;
/** A socket that does not close politely in this time is cut. */
const CLOSE_MS = 1_000;
/** A receipt's commit may hold up the receipts after it for no longer than this. */
const RECEIPT_MS = 10_000;
/** What the owner reads in the phone's list of linked devices. The names that browsers have are accepted for codes. */
const BROWSER = Browsers.macOS("Chrome");

/** What every connection of a network shares. */
interface Shared {
  runtime: Runtime;
  kv: Kv;
  seal: Seal;
  /** Null is the real network. */
  url: string | null;
  version: () => Promise<WebVersion>;
  inspect: Inspect;
  refreshHandled: boolean;
  countStray: CountStray;
  /** The network refused the version: the next one is asked for anew. True when it makes sense to try it at once. */
  versionRefused(lineId: string): boolean;
  /** Whether the line may be connected anew because it hears nothing: once in a while, for it may not help. */
  mayComplain(lineId: string): boolean;
}

/** How a line goes out. */
export interface Way {
  /** Null: straight. */
  proxy: Proxy | null;
  mediaHost: MediaHost;
}

interface LineConnection extends Connection {
  /** Resolves when the connection has ended and writes nothing any more. */
  readonly ended: Promise<void>;
}

/** The parts that exist while there is a socket. */
interface Live {
  socket: WASocket;
  auth: AuthState;
  settings: Settings;
  sender: Sender;
  recipients: Recipients;
  groups: GroupCache;
  talk: Pick<Connection, "groups" | "contacts" | "chats">;
  pairing: Pairing;
  standing: Standing;
  version: WebVersion;
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
  let live: Live | undefined;
  let inbox: Inbox | undefined;
  const names = makeNames();
  let lastFrameAt = 0;
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
    const handedOver = inbox?.close() ?? Promise.resolve();
    // Not within the call that found the end: the caller of `open` has its connection by then.
    queueMicrotask(() => events.closed(reason));
    tearDown(handedOver).catch((error) => log.error({ error: String(error?.name) }, "a connection did not end cleanly"))
      .finally(() => ended.resolve());
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
    const { proxy, mediaHost } = await options.way;
    if (proxy) proxyFailure = proxy.failure;
    const auth = await openAuthState({ kv, seal, lineId });
    const version = await shared.version();
    if (over) return await auth.close();
    const journal = makeJournal({ kv, seal, lineId, auth, runtime: { clock, log } }, {
      decrypted(entry) {
        vitals.decrypted();
        inbox?.decrypted(entry);
      },
      undecrypted(entry) {
        vitals.undecrypted();
        inbox?.undecrypted(entry);
      },
      broken,
    });
    const groups = makeGroupCache(() => live!.socket, runtime);
    const devices = makeDevices({
      creds: auth.creds,
      clock,
      lidMapping: () => live!.socket.signalRepository.lidMapping,
    });
    const sent = makeSentStore({ kv, seal, lineId, runtime });
    const logger = quietLogger(log);
    const left = isLinked(auth.creds) ? await journal.leftovers() : { decrypted: [], undecrypted: [] };
    if (over) return await auth.close();
    if (isLinked(auth.creds)) countLogin(auth.creds);
    const socket = makeWASocket({
      ...LINE_CONFIG,
      ...(shared.url === null ? {} : { waWebSocketUrl: shared.url }),
      ...(proxy ? { agent: proxy.agent as unknown as Agent } : {}),
      auth,
      version: version.version,
      logger,
      makeSignalRepository: (...args) => reportRefusals(journal.makeSignalRepository(...args), cause, broken),
      getMessage: ({ id }) => id ? sent.find(id) : Promise.resolve(undefined),
      cachedGroupMetadata: groups.cached,
      userDevicesCache: devices.cache,
    });
    keepTrustedTokens(socket.authState.keys);
    const recipients = makeRecipients({ socket, kv, lineId, runtime });
    const upload = uploadTo(mediaHost, socket);
    const isOpen = () => loggedIn;
    const source: SenderOptions["source"] = async ({ lineId, networkId }) =>
      await makeSentStore({ kv, seal, lineId, runtime }).find(networkId) ??
        (await findReceived({ kv, seal, lineId }, networkId))?.message ?? null;
    const standing = makeStanding({
      socket,
      saltOf: () => auth.get<Uint8Array>("nct-salt", SALT_ID),
      clock,
      restriction: options.restriction,
      changed: (restriction) => over || events.restricted(restriction),
    });
    const sender = makeSender({
      lineId,
      source,
      socket,
      recipients,
      groups,
      devices,
      sent,
      upload,
      inspect: shared.inspect,
      standing,
      acknowledged: vitals.sent,
      runtime: { ...runtime, log },
      isOpen,
    });
    takeStrays({ socket, creds: auth.creds, count: shared.countStray, log });
    socket.ws.on("frame", (frame: BinaryNode | Uint8Array) => frame instanceof Uint8Array || devices.watch(frame));
    socket.ws.on("frame", vitals.frame);
    const settings = makeSettings({
      keys: auth.keys,
      host: mediaHost,
      query: (node) => socket.query(node),
      runtime: { clock, log },
    });
    socket.ws.on("frame", settings.watch);
    if (proxy) {
      socket.ws.on("frame", (frame: BinaryNode | Uint8Array) => frame instanceof Uint8Array || leaveFiles(frame));
    }
    const findPoll = makeFindPoll({ kv, seal, lineId, sent });
    const askPhone = makePhoneOf({ socket, groups, runtime: { clock, log } });
    const phoneOf: PhoneOf = (lid, chat) => cause.own(() => askPhone(lid, chat));
    inbox = openInbox({ socket, auth, mediaHost }, { journal, findPoll, phoneOf });
    for (const entry of left.decrypted) inbox.decrypted(entry);
    // The sender's second attempt may be among what was missed: it has its time once more.
    for (const entry of left.undecrypted) inbox.undecrypted({ ...entry, since: clock.now() });
    const pairing = pair(socket, auth);
    const parts = {
      socket,
      recipients,
      names,
      me: () => ({ ...ownJids(auth.creds), name: ownName(auth.creds) }),
      runtime,
    };
    const talk = {
      groups: makeGroups({ ...parts, cache: groups }),
      contacts: makeContacts(parts),
      chats: makeChats(parts),
    };
    takeNotices({
      socket,
      phoneOf,
      async groupNow(id) {
        const { participants: _, ...group } = await cause.own(() => talk.groups.get(id));
        return group;
      },
      receive: (notice) => over ? Promise.reject(new Error("the connection has ended")) : events.notice(notice),
      changed: groups.forget,
      runtime: { log },
    });
    live = { socket, auth, settings, sender, recipients, groups, talk, pairing, standing, version };
    listen(live, journal);
  }

  function openInbox(
    { socket, auth, mediaHost }: Pick<Live, "socket" | "auth"> & Pick<Way, "mediaHost">,
    { journal, findPoll, phoneOf }: { journal: Journal; findPoll: FindPoll; phoneOf: PhoneOf },
  ): Inbox {
    const source = { host: mediaHost, runtime, socket: () => loggedIn ? socket : null };
    return makeInbox({
      journal,
      runtime: { clock, log },
      receive: (message, settle) => {
        names.note(message);
        return events.message(message, settle);
      },
      context: {
        get me() {
          return ownJids(auth.creds);
        },
        findPoll,
        // The message is in the journal by now.
        phoneOf,
        media: (message, kind, file) => incomingMedia(source, message, { kind, file }),
        history: (part) => takeHistory(part, { keys: socket.authState.keys, host: mediaHost, runtime: { clock, log } }),
      },
    });
  }

  function pair(socket: WASocket, auth: AuthState): Pairing {
    const { creds, saveCreds } = auth;
    const { refreshHandled } = shared;
    const { pairingPhone } = options;
    const link = {
      socket,
      creds,
      saveCreds,
      browser: BROWSER,
      runtime: { ...runtime, log },
      pairingPhone,
      refreshHandled,
    };
    return takeOverPairing(link, {
      qr: (text) => over || events.qr(text),
      code: (code) => over || events.pairingCode(code),
      passkey: (request) => over || events.passkey(request),
      linked: () => over || events.linked(identityOf(auth.creds)),
      expired: (detail) => finish({ ...closeReason("link_expired"), ...(detail ? { detail } : {}) }),
      failed: (error) => {
        log.warn({ error: error instanceof Error ? error.name : "unknown" }, "linking failed");
        finish(
          error instanceof CodeRefused ? codeRefused(error.code) : distrustOf(error) ?? closeReason("unavailable"),
        );
      },
    });
  }

  function listen(live: Live, journal: Journal): void {
    const { socket, auth } = live;
    const { ws, ev } = socket;
    takeFramesInTurn(ws, cause.frame, (error) => {
      log.warn({ error: error instanceof Error ? error.name : "unknown" }, "what the network sent could not be read");
    });
    cancelWatch = clock.after(CONNECT_MS, () => finish(endOf(undefined)));
    ws.once("frame", () => {
      cancelWatch();
      // A login that does not come to its end; whoever still has to link takes the time that the refs give.
      if (isLinked(auth.creds)) cancelWatch = clock.after(LOGIN_MS, () => finish(closeReason("unavailable")));
    });
    ws.on("frame", () => lastFrameAt = clock.now());
    ws.prependListener("CB:message", (stanza: BinaryNode) => {
      journal.watch(stanza);
      takeInTurn(stanza);
    });
    ws.prependListener("CB:receipt", (stanza: BinaryNode) => receive(live, stanza));
    ev.on("creds.update", () => {
      // The library takes every change that names nobody for a new name, and tells it by a presence: "available".
      if (loggedIn) stayUnavailable(live);
      auth.saveCreds().catch((error) => over || log.error({ error: error.name }, "credentials could not be saved"));
    });
    ev.on("connection.update", ({ connection, lastDisconnect }) => {
      if (over) return;
      if (connection === "open") {
        loggedIn = true;
        lastFrameAt = clock.now();
        cancelWatch();
        watchSilence();
        events.open(identityOf(auth.creds));
        stayUnavailable(live);
        inbox?.open();
        if (auth.creds.myAppStateKeyId) void live.settings.ask();
      }
      if (connection === "close") finish(unlinking ? closeReason("asked") : endOf(lastDisconnect?.error));
    });
  }

  /** Taking the lock of receipts before the library does makes it wait with its ack for our commit (promise 4). */
  function receive({ socket, auth }: Live, stanza: BinaryNode): void {
    const receipts = auth.creds.me ? receiptsOf(stanza, ownJids(auth.creds), clock.now()) : [];
    if (receipts.length === 0) return;
    if (over) return;
    // Not in the lock: receipts that come together are to be kept together.
    const kept = Promise.all(receipts.map((receipt) => events.receipt(receipt)));
    kept.catch(() => {}); // it is the lock's turn that hears of it
    socket.receiptMutex.mutex(async () => {
      if (await within(clock, RECEIPT_MS, kept) === "late") log.warn("a receipt was not kept in time");
    }).catch((error) => log.warn({ error: error.name }, "a receipt could not be kept"));
  }

  /** Whoever is available keeps the owner's phone from ringing; the library leaves it at that until it knows a name. */
  function stayUnavailable({ socket }: Live): void {
    socket.sendNode({ tag: "presence", attrs: { type: "unavailable" } }).catch((error) => {
      log.debug({ error: error.name }, "the line's presence could not be told");
    });
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
  function watchSilence(complained: string | null = null): void {
    cancelWatch = clock.after(WATCH_MS, () => {
      if (clock.now() - lastFrameAt > SILENCE_MS) return finish(closeReason("lost"));
      const complaint = vitals.complaint();
      if (complaint !== null && shared.mayComplain(lineId)) {
        return finish({ ...closeReason("lost"), detail: complaint });
      }
      // Another connection did not help: people have to know.
      if (complaint !== complained) events.degraded(complaint);
      watchSilence(complaint);
    });
  }

  const started = start().catch((error) => {
    log.error({ error: error instanceof Error ? error.name : "unknown" }, "a connection could not be opened");
    const detail = error instanceof EgressError
      ? `The proxy can't be used: ${error.message}.`
      : error instanceof SealError
      ? "The stored credentials do not fit the secret key."
      : "The storage failed.";
    finish({ kind: "unavailable", code: null, detail });
  });

  function open(): Live {
    if (!live || !loggedIn) {
      throw new NetworkRefusal("The session is not connected to the messaging network.");
    }
    return live;
  }

  /** A part of the port; each call of it as the open connection has it, or refused. */
  function whileOpen<Part extends keyof Live["talk"]>(part: Part): Connection[Part] {
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

  async function prepare({ sender }: Live, message: Outgoing, signal: AbortSignal): Promise<Prepared> {
    const prepared = await cause.own(() => sender.prepare(message, signal));
    return prepared.kind === "ready"
      ? { ...prepared, type: () => cause.own(prepared.type), send: () => cause.own(prepared.send) }
      : prepared;
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

/** What all lines have in common. */
const LINE_CONFIG: Partial<SocketConfig> = {
  browser: BROWSER,
  // With one the library limits every frame that it writes, and keeps a stack trace of each call: a tenth of its time.
  connectTimeoutMs: 0,
  keepAliveIntervalMs: PING_MS,
  defaultQueryTimeoutMs: QUERY_MS,
  // The phone goes on ringing for messages.
  markOnlineOnConnect: false,
  // The gateway reports what arrives from the link on; no history.
  syncFullHistory: false,
  shouldSyncHistoryMessage: () => false,
  emitOwnEvents: false,
  generateHighQualityLinkPreview: false,
  // The store's own errors are not cured by trying again at once.
  transactionOpts: { maxCommitRetries: 2, delayBetweenTriesMs: 200 },
  appStateMacVerification: DEFAULT_CONNECTION_CONFIG.appStateMacVerification,
};

async function unlink({ socket, auth }: Live): Promise<void> {
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

/** Drops the TCP connection under the socket; frames that are still to be written fail. */
function cut(socket: WASocket): void {
  const { socket: transport } = socket.ws as unknown as { socket: { terminate(): void } | null };
  transport?.terminate();
}

// The socket's `user` is a copy from when the socket was made: the credentials say who the line is now.
function ownJids({ me }: AuthenticationCreds): OwnJids {
  const { id, lid } = me!;
  return { id, ...(lid ? { lid } : {}) };
}

function identityOf(creds: AuthenticationCreds): OwnIdentity {
  const { id, lid } = creds.me!;
  return { phone: digitsOf(id), lid: lid ? jidNormalizedUser(lid) : null, pushName: ownName(creds) };
}

function ownName({ me }: AuthenticationCreds): string | null {
  // "~" is what the library calls a line before the phone tells its name.
  return me?.name && me.name !== "~" ? me.name : null;
}
