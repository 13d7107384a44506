/**
 * The socket of one connection, and the parts that work on it: each has its own file, and here they are given each other.
 */
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
import type { Inspect } from "../../inspect/inspector.ts";
import type { Runtime } from "../../runtime.ts";
import type { Kv } from "../../store/kv.ts";
import type { Seal } from "../../store/seal.ts";
import type { CloseReason, Connection, ConnectionEvents } from "../connection.ts";
import type { OpenOptions } from "../network.ts";
import { errorName } from "../../base/detached.ts";
import { within } from "../../base/within.ts";
import { type AuthState, isLinked } from "./auth_state.ts";
import { makeChats } from "./chats/chats.ts";
import { makeContacts, makeNames } from "./chats/contacts.ts";
import { makeGroups } from "./chats/groups.ts";
import { hasAdmin } from "./chats/members.ts";
import { closeReason, codeRefused, distrustOf } from "./close_reason.ts";
import { type Cause, reportRefusals } from "./incoming/cause.ts";
import { SALT_ID, takeHistory } from "./incoming/history.ts";
import { type Inbox, makeInbox } from "./incoming/inbox.ts";
import type { Decryption } from "./incoming/decryption.ts";
import type { Journal, Leftovers } from "./incoming/journal.ts";
import { incomingMedia } from "./incoming/media.ts";
import { takeNotices } from "./incoming/notices.ts";
import { makePhoneOf, type PhoneOf } from "./incoming/numbers.ts";
import { findReceived } from "./incoming/originals.ts";
import { makeFindPoll } from "./incoming/polls.ts";
import { takeReceipts } from "./incoming/receipts.ts";
import { makeSettings, type Settings } from "./incoming/settings.ts";
import { type CountStray, takeStrays } from "./incoming/strays.ts";
import { CodeRefused } from "./linking/code.ts";
import { Pairing } from "./linking/pairing.ts";
import type { MediaHost } from "./media_host.ts";
import { makeAhead } from "./outgoing/ahead.ts";
import { makeDevices } from "./outgoing/devices.ts";
import { makeGroupCache } from "./outgoing/group_cache.ts";
import { uploadTo } from "./outgoing/media_upload.ts";
import { makeRecipients, type Recipients } from "./outgoing/recipients.ts";
import { Sender, type SenderDeps } from "./outgoing/sender.ts";
import { makeSentStore } from "./outgoing/sent_store.ts";
import { makeStanding, type Standing } from "./outgoing/standing.ts";
import { identityOf, ownJids, ownName } from "./jids.ts";
import { leaveFiles } from "./repairs/app_state.ts";
import { countLogin } from "./repairs/logins.ts";
import { quietLogger } from "./repairs/quiet_logger.ts";
import { keepTrustedTokens } from "./repairs/trusted_tokens.ts";
import type { VitalSigns } from "./vitals.ts";
import type { WebVersion } from "./web_version.ts";

/** The library pings this often; an answer is a frame, and a frame shows that the other end lives. */
const PING_MS = 20_000;
const QUERY_MS = 30_000;
/** A chat waits for what is asked of its group: it is short. */
const GROUP_ANSWER_MS = 5_000;
/** What the owner reads in the phone's list of linked devices. The names that browsers have are accepted for codes. */
const BROWSER = Browsers.macOS("Chrome");

/** What all lines have in common. */
const LINE_CONFIG: Partial<SocketConfig> = {
  browser: BROWSER,
  // None: with it the library also limits each frame that it writes, and takes a stack trace each time, a tenth of its work.
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

/** What every connection of a network shares. */
export interface SocketGround {
  runtime: Runtime;
  kv: Kv;
  seal: Seal;
  /** Null is the real network. */
  url: string | null;
  inspect: Inspect;
  refreshHandled: boolean;
  countStray: CountStray;
}

/** How a line goes out. */
export interface Way {
  /** Null: straight. */
  proxy: Proxy | null;
  mediaHost: MediaHost;
}

/** What a socket is opened with. */
interface SocketOptions extends Pick<OpenOptions, "lineId" | "restriction" | "pairingPhone"> {
  auth: AuthState;
  way: Way;
  version: WebVersion;
  decryption: Decryption;
  journal: Journal;
  /** What the journal keeps of earlier connections. */
  left: Leftovers;
  cause: Cause;
  vitals: VitalSigns;
}

/** What the parts ask of the connection that they belong to, and report to it. */
interface Owner {
  /** Logged in. */
  isOpen(): boolean;
  /** Nothing is reported any more. */
  isOver(): boolean;
  /** Nothing may reach the network about a message that is not on disk. */
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
  standing: Standing;
  version: WebVersion;
}

/** Begins to connect. */
export function openSocket(shared: SocketGround, options: SocketOptions, owner: Owner): LineSocket {
  const { kv, seal, refreshHandled } = shared;
  const { lineId, auth, version, decryption, journal, left, cause, vitals, way: { proxy, mediaHost } } = options;
  const { events, isOpen, isOver } = owner;
  const { clock } = shared.runtime;
  const log = shared.runtime.log.child({ lineId });
  const runtime = { ...shared.runtime, log };
  const names = makeNames();

  const groups = makeGroupCache(() => socket, runtime);
  const devices = makeDevices({ creds: auth.creds, clock, lidMapping: () => socket.signalRepository.lidMapping });
  const sent = makeSentStore({ kv, seal, lineId, runtime });
  const ahead = makeAhead();
  if (isLinked(auth.creds)) countLogin(auth.creds);
  const socket = makeWASocket({
    ...LINE_CONFIG,
    ...(shared.url === null ? {} : { waWebSocketUrl: shared.url }),
    ...(proxy ? { agent: proxy.agent as unknown as Agent } : {}),
    auth,
    version: version.version,
    logger: quietLogger(log),
    makeSignalRepository: (...args) =>
      ahead.around(reportRefusals(decryption.makeSignalRepository(...args), cause, owner.broken)),
    getMessage: ({ id }) => id ? sent.find(id) : Promise.resolve(undefined),
    cachedGroupMetadata: groups.cached,
    userDevicesCache: devices.cache,
  });
  keepTrustedTokens(socket.authState.keys);
  const recipients = makeRecipients({ socket, kv, lineId, runtime });
  const upload = uploadTo(mediaHost, socket);
  const source: SenderDeps["source"] = async ({ lineId, networkId }) =>
    await makeSentStore({ kv, seal, lineId, runtime }).find(networkId) ??
      (await findReceived({ kv, seal, lineId }, networkId))?.message ?? null;
  const standing = makeStanding({
    socket,
    saltOf: () => auth.get<Uint8Array>("nct-salt", SALT_ID),
    clock,
    restriction: options.restriction,
    changed: (restriction) => isOver() || events.restricted(restriction),
  });
  const sender = new Sender({
    lineId,
    source,
    socket,
    recipients,
    groups,
    devices,
    sent,
    ahead,
    auth,
    upload,
    inspect: shared.inspect,
    standing,
    acknowledged: vitals.sent,
    runtime,
    isOpen,
  });
  takeStrays({ socket, creds: auth.creds, count: shared.countStray, log });
  const settings = makeSettings({
    keys: auth.keys,
    host: mediaHost,
    query: (node) => socket.query(node),
    runtime,
  });
  const watches = [devices.watch, settings.watch, ...(proxy ? [leaveFiles] : [])];
  socket.ws.on("frame", (frame: BinaryNode | Uint8Array) => {
    vitals.frame(frame);
    if (frame instanceof Uint8Array) return;
    for (const watch of watches) watch(frame);
  });
  const findPoll = makeFindPoll({ kv, seal, lineId, sent });
  const askPhone = makePhoneOf({ socket, groups, runtime });
  // What it is asked for is in the journal by then.
  const phoneOf: PhoneOf = (lid, chat) => cause.own(() => askPhone(lid, chat));
  async function isAdmin(group: string, addresses: readonly string[]): Promise<boolean> {
    const metadata = await within(clock, GROUP_ANSWER_MS, cause.own(() => groups.metadata(group))).catch(() =>
      "late" as const
    );
    return metadata !== "late" && hasAdmin(metadata, addresses);
  }
  const inbox = openInbox();
  for (const entry of left.decrypted) inbox.decrypted(entry);
  // The sender's second attempt may be among what was missed: it has its time once more.
  for (const entry of left.undecrypted) inbox.undecrypted({ ...entry, since: clock.now() });
  const pairing = pair();
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
    receive: (notice) => isOver() ? Promise.reject(new Error("the connection has ended")) : events.notice(notice),
    changed: groups.forget,
    runtime,
  });
  takeReceipts({ socket, creds: auth.creds, isOver, receive: (receipt) => events.receipt(receipt), runtime });
  return { socket, auth, settings, sender, recipients, inbox, talk, pairing, standing, version };

  function openInbox(): Inbox {
    const source = { host: mediaHost, runtime, socket: () => isOpen() ? socket : null };
    return makeInbox({
      journal,
      runtime,
      receive: (message, settle) => {
        names.note(message);
        return events.message(message, settle);
      },
      context: {
        get me() {
          return ownJids(auth.creds);
        },
        findPoll,
        phoneOf,
        isAdmin,
        media: (message, kind, file) => incomingMedia(source, message, { kind, file }),
        history: (part) => takeHistory(part, { keys: socket.authState.keys, host: mediaHost, runtime }),
      },
    });
  }

  function pair(): Pairing {
    const { pairingPhone } = options;
    const link = { socket, auth, browser: BROWSER, runtime, pairingPhone, refreshHandled };
    return new Pairing(link, {
      qr: (text) => isOver() || events.qr(text),
      code: (code) => isOver() || events.pairingCode(code),
      passkey: (request) => isOver() || events.passkey(request),
      linked: () => isOver() || events.linked(identityOf(auth.creds)),
      expired: (detail) => owner.finish({ ...closeReason("link_expired"), ...(detail ? { detail } : {}) }),
      failed: (error) => {
        log.warn({ error: errorName(error) }, "linking failed");
        owner.finish(
          error instanceof CodeRefused ? codeRefused(error.code) : distrustOf(error) ?? closeReason("unavailable"),
        );
      },
    });
  }
}

/** Drops the TCP connection under the socket; frames that are still to be written fail. */
export function cut(socket: WASocket): void {
  const { socket: transport } = socket.ws as unknown as { socket: { terminate(): void } | null };
  transport?.terminate();
}
