/** Builds the socket of one connection and connects the parts that work on it. Each part has its own file. */
import type { Agent } from "node:https";
import {
  type BinaryNode,
  Browsers,
  DEFAULT_CONNECTION_CONFIG,
  makeWASocket,
  type SocketConfig,
  type WASocket,
} from "@whiskeysockets/baileys";
import type { Proxy } from "../../egress/proxy.ts";
import { directAgent } from "../../egress/tunnel_agent.ts";
import type { Inspect, ReadOutside } from "../../inspect/inspector.ts";
import type { Log, Runtime } from "../../runtime.ts";
import type { Kv } from "../../store/kv.ts";
import type { Seal } from "../../store/seal.ts";
import type { CloseReason, Connection, ConnectionEvents } from "../connection.ts";
import type { Encounters } from "../encounters.ts";
import type { Notice } from "../incoming.ts";
import type { OpenOptions } from "../network.ts";
import { detached, errorName } from "../../base/retry.ts";
import { type AuthState, isLinked } from "./auth_state.ts";
import { makeChats, makeContacts, makeNames } from "./chats/contacts.ts";
import { makeGroups } from "./chats/groups.ts";
import { makePresence, type Presence } from "./chats/presence.ts";
import { closeReason, codeExpired, codeRefused, distrustOf } from "./close_reason.ts";
import { announceNames, type Backlog, makeBacklog, makeRefill } from "./repairs/upkeep.ts";
import { type Cause, reportRefusals } from "./incoming/cause.ts";
import { SALT_ID } from "./incoming/history_sync.ts";
import { makeUsernameWatch } from "./incoming/identities.ts";
import type { Alone, Inbox } from "./incoming/inbox.ts";
import type { Decryption } from "./incoming/decryption.ts";
import type { Journal, Leftovers } from "./incoming/journal.ts";
import { findStored, sentIn } from "./stored_messages.ts";
import { takeIncoming } from "./incoming/receiving.ts";
import { makeFileFilter, makeSettings, type Settings, type WithFiles } from "./incoming/app_state.ts";
import { type CountUnknown, takeUnknownStanzas } from "./incoming/stanzas.ts";
import { CodeExpired, CodeRefused } from "./linking/code.ts";
import { Pairing, type PairingEvents } from "./linking/pairing.ts";
import type { MediaHost } from "./media_host.ts";
import { makeAddressing, makeRecipients, type Recipients } from "./outgoing/addressing.ts";
import { makeAhead } from "./outgoing/ahead.ts";
import { makeDevices } from "./outgoing/devices.ts";
import { makeGroupCache } from "./outgoing/group_cache.ts";
import { uploadTo } from "./outgoing/media_upload.ts";
import { makeMoves } from "./outgoing/moves.ts";
import { takeRetryReceipts } from "./outgoing/resends.ts";
import { makeSender, type Sender } from "./outgoing/sender.ts";
import { makeRestrictions, type Restrictions } from "./outgoing/restrictions.ts";
import { identityOf, ownJids, ownName } from "./jids.ts";
import { countLogin } from "./repairs/handshake.ts";
import { quietLogger } from "./repairs/containment.ts";
import { keepTrustedTokens } from "./repairs/isolation.ts";
import { makeDisappearingTimers } from "./disappearing.ts";
import type { Liveness } from "./liveness.ts";
import { partsOf, type WebVersion } from "./web_version.ts";

/** The library's ping interval. An answer is a frame, and a frame proves that the other end is alive. */
const PING_MS = 20_000;
const QUERY_MS = 30_000;
/** The name in the phone's list of linked devices. Pairing codes require a browser's name. */
const BROWSER = Browsers.macOS("Chrome");

/** The configuration shared by all lines. */
const LINE_CONFIG: Partial<SocketConfig> = {
  browser: BROWSER,
  // No timeout: with one, the library also times each frame that it writes and takes a stack trace each time, a tenth
  // of its work.
  connectTimeoutMs: 0,
  keepAliveIntervalMs: PING_MS,
  defaultQueryTimeoutMs: QUERY_MS,
  // Keeps notifications on the owner's phone.
  markOnlineOnConnect: false,
  // No history: the gateway reports only what arrives after linking.
  syncFullHistory: false,
  shouldSyncHistoryMessage: () => false,
  emitOwnEvents: false,
  // No pause after the request to send an unreadable message again: with one, the line's next message waits for it, and
  // a stranger's forged messages hold up all others.
  retryRequestDelayMs: 0,
  // Keeps the session with a sender whose message was unreadable twice. The library would delete it unnoticed: other
  // messages on it could not be read any more, and the line's next one would not be encrypted for that device. The
  // sender's second attempt starts a new session anyway.
  enableAutoSessionRecreation: false,
  // An immediate retry does not cure the store's errors.
  transactionOpts: { maxCommitRetries: 2, delayBetweenTriesMs: 200 },
};

/** What all connections of a network share. */
export interface SocketGround {
  runtime: Runtime;
  kv: Kv;
  seal: Seal;
  /** Null for the real network. */
  url: string | null;
  inspect(accountId: string): Inspect;
  readOutside(accountId: string): ReadOutside;
  alone: Alone;
  /** Counts a journal entry that is set aside. */
  setAside(): void;
  countUnknown: CountUnknown;
  encounters: Pick<Encounters, "note">;
}

/** The network path of a line. */
export interface Way {
  /** Null for a direct connection. */
  proxy: Proxy | null;
  mediaHost: MediaHost;
}

/** What is needed to open a socket. */
interface SocketOptions extends Pick<OpenOptions, "lineId" | "accountId" | "restriction" | "pairingPhone"> {
  auth: AuthState;
  way: Way;
  version: WebVersion;
  decryption: Decryption;
  journal: Journal;
  /** What the journal still holds from earlier connections. */
  left: Leftovers;
  cause: Cause;
  liveness: Liveness;
}

/** What the parts need to know about their connection, and how they report to it. */
interface Owner {
  /** Whether it is logged in. */
  isOpen(): boolean;
  /** Whether it has ended: nothing is reported after that. */
  isOver(): boolean;
  /** The store refused a message: from now on, nothing about it may reach the network. */
  broken(): void;
  finish(reason: CloseReason): void;
  events: ConnectionEvents;
}

/** The parts that exist while there is a socket. */
export interface LineSocket {
  socket: WASocket;
  auth: AuthState;
  settings: Settings;
  sender: Sender;
  recipients: Recipients;
  inbox: Inbox;
  talk: Pick<Connection, "groups" | "contacts" | "chats">;
  pairing: Pairing;
  restrictions: Restrictions;
  presence: Presence;
  backlog: Backlog;
  version: WebVersion;
}

/**
 * Starts to connect, in three stages, each of which takes what the one before has made: the library on our store, what
 * sees each frame before the library does, and the parts that work on the connection.
 */
export function openSocket(shared: SocketGround, options: SocketOptions, owner: Owner): LineSocket {
  const log = shared.runtime.log.child({ lineId: options.lineId });
  const opening = { shared, options, owner, runtime: { ...shared.runtime, log } };
  return openParts(opening, comeBefore(opening, openLibrary(opening)));
}

interface Opening {
  shared: SocketGround;
  options: SocketOptions;
  owner: Owner;
  /** With the line's log. */
  runtime: Runtime;
}

function openLibrary({ shared, options, owner, runtime }: Opening) {
  const { auth, cause, decryption, version, way: { proxy } } = options;
  const { clock, log } = runtime;
  const groups = makeGroupCache(() => socket, runtime);
  const devices = makeDevices({ creds: auth.creds, clock, lidMapping: () => socket.signalRepository.lidMapping });
  const ahead = makeAhead();
  const url = new URL(shared.url ?? DEFAULT_CONNECTION_CONFIG.waWebSocketUrl);
  if (isLinked(auth.creds)) countLogin(auth.creds);
  const socket = makeWASocket({
    ...LINE_CONFIG,
    waWebSocketUrl: url,
    agent: (proxy?.agentFor(url) ?? directAgent(url, clock)) as Agent,
    auth,
    version: partsOf(version.version),
    logger: quietLogger(log),
    makeSignalRepository: (...args) =>
      ahead.around(reportRefusals(decryption.makeSignalRepository(...args), cause, owner.broken)),
    cachedGroupMetadata: groups.cached,
    userDevicesCache: devices.cache,
  });
  keepTrustedTokens(socket.authState.keys);
  return { socket, groups, devices, ahead };
}

/** Nothing is received before this has returned: the library connects in a later turn of the loop. */
function comeBefore(
  { shared, options, owner: { events, isOver }, runtime }: Opening,
  library: ReturnType<typeof openLibrary>,
) {
  const { socket, groups, devices } = library;
  const { kv, seal } = shared;
  const { accountId, auth, lineId, liveness, way: { mediaHost } } = options;
  const { log } = runtime;
  announceNames(socket, log);
  takeRetryReceipts({
    socket,
    groups,
    me: () => ownJids(auth.creds),
    sentIn: (key) => sentIn(key, { line: { kv, seal, lineId }, keys: auth.keys }),
    isOver,
    runtime,
  });
  takeUnknownStanzas({ socket, creds: auth.creds, count: shared.countUnknown, log });
  socket.ws.on("CB:success", ({ attrs }: BinaryNode) => {
    if (Number(attrs.t) > 0) runtime.confirmed.confirm(Number(attrs.t) * 1000);
  });
  const readOutside = shared.readOutside(accountId);
  const settings = makeSettings({
    auth,
    host: mediaHost,
    readOutside,
    query: (node) => socket.query(node),
    runtime,
  });
  const backlog = makeBacklog(socket, runtime);
  const files = makeFileFilter();
  /** Of what the network says again, or in another way: nothing waits until it is kept. */
  const told = (notice: Notice) =>
    void (isOver() || detached(events.notice(notice), (failure) => log.warn(failure, "a person was not noted")));
  const named = makeUsernameWatch(told);
  const watches = [devices.watch, settings.watch, backlog.watch, files.watch, named, makeRefill(() => socket, log)];
  socket.ws.on("frame", (frame: BinaryNode | Uint8Array) => {
    liveness.frame(frame);
    if (frame instanceof Uint8Array) return;
    for (const watch of watches) watch(frame);
  });
  return { ...library, readOutside, settings, backlog, files, told };
}

function openParts(
  { shared, options, owner, runtime }: Opening,
  { socket, groups, devices, ahead, readOutside, settings, backlog, files, told }: ReturnType<typeof comeBefore>,
): LineSocket {
  const { kv, seal } = shared;
  const { lineId, auth, version, liveness, pairingPhone, way: { proxy, mediaHost } } = options;
  const { events, isOpen, isOver } = owner;
  const { clock, log } = runtime;
  const names = makeNames();
  const timers = makeDisappearingTimers({ kv, lineId });
  const recipients = makeRecipients({ socket, kv, auth, lineId, runtime });
  const restrictions = makeRestrictions({
    socket,
    saltOf: () => auth.get<Uint8Array>("nct-salt", SALT_ID),
    clock,
    restriction: options.restriction,
    changed: (restriction) => isOver() || events.restricted(restriction),
  });
  const newLid = (user: string) => auth.get<string>("new-lid", user);
  const addressing = makeAddressing(() => socket.signalRepository.lidMapping, auth.creds, newLid);
  const moved = (chat: string, lid: string) => told({ kind: "person", id: null, chat, lid });
  const moves = makeMoves({ socket, keys: auth.keys, addressing, devices, moved, runtime });
  const sender = makeSender({
    lineId,
    addressing,
    moves,
    timers,
    source: (of) => findStored({ kv, seal, lineId: of.lineId }, of.networkId),
    socket,
    recipients,
    groups,
    devices,
    seal,
    ahead,
    auth,
    upload: uploadTo(mediaHost, socket),
    inspect: shared.inspect(options.accountId),
    restrictions,
    acknowledged: liveness.sent,
    refused: (code) => shared.encounters.note("refused", `message ${code}`),
    runtime,
    isOpen,
  });
  const me = () => ({ ...ownJids(auth.creds), name: ownName(auth.creds) });
  const presence = makePresence(socket, runtime);
  const parts = { socket, recipients, names, me, presence, runtime };
  const withFiles: WithFiles = proxy ? (work) => work() : files.withFiles;
  const talk = {
    groups: makeGroups({ ...parts, cache: groups, addressing, tokenOf: restrictions.given }),
    contacts: makeContacts({ ...parts, withFiles }),
    chats: makeChats(parts),
  };
  const inbox = takeIncoming({
    ...shared,
    ...options,
    ...owner,
    socket,
    creds: auth.creds,
    groups,
    timers,
    moves,
    async groupNow(id) {
      const { participants: _, ...group } = await talk.groups.get(id);
      return group;
    },
    host: mediaHost,
    readOutside,
    events: {
      message(message, settle) {
        names.note(message);
        return events.message(message, settle);
      },
      notice: (notice) => events.notice(notice),
      receipt: (receipt) => events.receipt(receipt),
    },
    runtime,
  });
  const link = { socket, auth, browser: BROWSER, runtime, pairingPhone };
  const pairing = new Pairing(link, linkingEvents(owner, auth, log));
  return { socket, auth, settings, sender, recipients, inbox, talk, pairing, restrictions, presence, backlog, version };
}

/** Reports the progress of linking as events of the connection. */
function linkingEvents({ events, isOver, finish }: Owner, auth: AuthState, log: Log): PairingEvents {
  return {
    qr: (text) => isOver() || events.qr(text),
    pairingCode: (code) => isOver() || events.pairingCode(code),
    passkey: (request) => isOver() || events.passkey(request),
    linked: () => isOver() || events.linked(identityOf(auth.creds)),
    expired: (detail) => finish({ ...closeReason("link_expired"), ...(detail ? { detail } : {}) }),
    failed(error) {
      log.warn({ error: errorName(error) }, "linking failed");
      if (error instanceof CodeRefused) return finish(codeRefused(error));
      finish(error instanceof CodeExpired ? codeExpired() : distrustOf(error) ?? closeReason("unavailable"));
    },
  };
}

/** Drops the TCP connection under the socket. Frames not yet written fail. */
export function cut(socket: WASocket): void {
  socket.ws["socket"]?.terminate();
}
