/**
 * Incoming frames and stanzas before the library processes them: kept in order, corrected, and answered in its place
 * where it ignores them or handles them wrongly. The network keeps a stanza that is not acknowledged: it cuts the
 * connection to deliver it again, and holds back everything after it.
 *
 * - A stanza without a handler is acknowledged as other clients do, counted by tag and type, and logged once an hour.
 *   So are children of `<ib>` and GraphQL notifications that nobody handles, and a stream error that names a stanza
 *   which was never acknowledged: that is how a change of the network is noticed.
 * - A stanza whose id no app would choose is acknowledged with exactly that id, which the library can't do, and
 *   dropped.
 * - Status posts are not messages to the line. For those that it can't decrypt, the library asks for a retry and
 *   refuses them.
 * - `<downgrade_webclient>` only concerns links that are not complete. The library ends every connection on it.
 * - `<success>` logs in a linked line. Before that, the library would take the line for connected without a number.
 */
import type { EventEmitter } from "node:events";
import { setImmediate } from "node:timers/promises";
import {
  type AuthenticationCreds,
  type BinaryNode,
  getAllBinaryNodeChildren,
  isJidStatusBroadcast,
  type WASocket,
} from "@whiskeysockets/baileys";
import PQueue from "p-queue";
import { detached } from "../../../base/retry.ts";
import type { Log, Runtime } from "../../../runtime.ts";
import { isLinked } from "../auth_state.ts";
import type { Renamed } from "../chats/contacts.ts";
import { isOwn, ownJids } from "../jids.ts";
import { childrenOf, encodePlainly, isMistaken, LONGEST_ID, withhold } from "../stanza.ts";
import { IDENTITY_OPERATIONS } from "./identities.ts";

/** Tags that the library or this adapter handles. */
const TAGS = new Set([
  "ack",
  "call",
  "chatstate",
  "failure",
  "ib",
  "iq",
  "message",
  "notification",
  "presence",
  "receipt",
  "stream:error",
  "stream:features",
  "success",
  "xmlstreamend",
]);
const NOTIFICATIONS = new Set([
  "account_sync",
  "companion_reg_refresh",
  "crsc_continuation",
  "devices",
  "encrypt",
  "link_code_companion_reg",
  "mediaretry",
  "mex",
  "newsletter",
  "passkey_prologue_request",
  "picture",
  "privacy_token",
  "server_sync",
  "w:gp2",
]);
/** Children of `<ib>` that are handled, or need not be. */
const BROADCASTS = new Set([
  "client_expiration",
  "dirty",
  "downgrade_webclient",
  "edge_routing",
  "offline",
  "offline_preview",
]);
/** GraphQL notifications that are handled. Those of channels need not be: a gateway has no use for them. */
const MEX_OPERATIONS = new Set([
  ...IDENTITY_OPERATIONS,
  "MessageCappingInfoNotification",
  "NotificationLinkedProfilesUpdates",
  "NotificationUserReachoutTimelockUpdate",
]);
const CHANNELS = "Newsletter";
/** Maximum number of pairs of tag and type that are counted separately: the network could invent any number. */
const MOST_PAIRS = 100;
/** What is no name of the protocol could be anything, a text or a number too. */
const NAME = /^[\w.:-]{0,60}$/;
const LOGGED_EVERY_MS = 60 * 60_000;

interface UnknownStanza {
  tag: string;
  type: string;
}
/** Counts a stanza that has no handler, or one that was never acknowledged (tag `stream:error`). */
export type CountUnknown = (stanza: UnknownStanza) => void;

/** Shared by all lines. Limits the number of pairs of tag and type, and logs each pair once an hour. */
export function makeCountUnknown(count: CountUnknown, { clock, log }: Pick<Runtime, "clock" | "log">): CountUnknown {
  const loggedAt = new Map<string, number>();
  return ({ tag: named, type: typed }) => {
    const [tag, type] = [named, typed].map((name) => NAME.test(name) ? name : "other") as [string, string];
    const pair = `${tag} ${type}`;
    const last = loggedAt.get(pair);
    if (last === undefined && loggedAt.size >= MOST_PAIRS) return count({ tag: "other", type: "" });
    if (clock.now() - (last ?? -Infinity) >= LOGGED_EVERY_MS) {
      loggedAt.set(pair, clock.now());
      log.warn(
        { tag, type },
        tag === "stream:error"
          ? "the network ended a connection over a stanza that was not acknowledged"
          : "the network sends a kind of stanza that is not handled",
      );
    }
    count({ tag, type });
  };
}

interface UnknownOptions {
  socket: Pick<WASocket, "ws" | "sendNode" | "sendRawMessage">;
  creds: AuthenticationCreds;
  count: CountUnknown;
  log: Log;
}

/** Must be called before any listener other than the library's is added. */
export function takeUnknownStanzas({ socket, creds, count, log }: UnknownOptions): void {
  const { ws } = socket;

  function acknowledge(stanza: BinaryNode): void {
    if (!stanza.attrs.id || !stanza.attrs.from) return;
    const ack = ackOf(stanza, creds.me?.id);
    const sent = isMistaken(ack) ? socket.sendRawMessage(encodePlainly(ack)) : socket.sendNode(ack);
    void detached(sent, (failure) => log.debug(failure, "a stanza could not be acknowledged"));
  }

  ws.on("frame", (stanza: BinaryNode | Uint8Array) => {
    if (stanza instanceof Uint8Array) return;
    const { tag, attrs } = stanza;
    for (const unknown of unknownIn(stanza)) count(unknown);
    if (!TAGS.has(tag)) {
      acknowledge(stanza);
    } else if (tag === "notification" && !NOTIFICATIONS.has(attrs.type ?? "")) {
      // The library acknowledges these, but only once it has an identity.
      if (!creds.me) acknowledge(stanza);
    } else if (tag === "iq" && attrs.type === "get" && attrs.xmlns === "urn:xmpp:ping" && attrs.id) {
      const pong = { tag: "iq", attrs: { id: attrs.id, type: "result", to: attrs.from ?? "" } };
      void detached(socket.sendNode(pong), (failure) => log.debug(failure, "a ping could not be answered"));
    }
  });

  for (const tag of ["message", "receipt", "call"]) {
    withhold(ws, `CB:${tag}`, (stanza) => {
      const { from = "", id = "" } = stanza.attrs;
      const isIgnored = tag === "message" && (isJidStatusBroadcast(from) || id.length > LONGEST_ID);
      if (!isIgnored && !isMistaken(stanza)) return false;
      acknowledge(stanza);
      return true;
    });
  }

  withhold(ws, "CB:ib,,downgrade_webclient", () => isLinked(creds));

  withhold(ws, "CB:success", () => {
    if (isLinked(creds)) return false;
    log.info("the network accepted the login before the link was complete");
    return true;
  });
}

/** What of a stanza nobody handles, by name. */
function unknownIn(stanza: BinaryNode): UnknownStanza[] {
  const { tag, attrs: { type = "" } } = stanza;
  if (!TAGS.has(tag) || (tag === "notification" && !NOTIFICATIONS.has(type))) return [{ tag, type }];
  if (tag === "notification" && type === "mex") {
    const operations = childrenOf(stanza, "update").map(({ attrs }) => attrs.op_name ?? "");
    const isHandled = (name: string) => name === "" || name.includes(CHANNELS) || MEX_OPERATIONS.has(name);
    return operations.filter((name) => !isHandled(name)).map((name) => ({ tag, type: `mex:${name}` }));
  }
  if (tag === "ib") {
    const names = getAllBinaryNodeChildren(stanza).map((child) => child.tag);
    return names.filter((name) => !BROADCASTS.has(name)).map((type) => ({ tag, type }));
  }
  if (tag !== "stream:error") return [];
  return childrenOf(stanza, "ack").map(({ attrs }) => ({ tag, type: attrs.class ?? "" }));
}

function ackOf({ tag, attrs }: BinaryNode, me: string | undefined): BinaryNode {
  const { id, from, participant, recipient, type } = attrs;
  return {
    tag: "ack",
    attrs: {
      id: id!,
      to: from!,
      class: tag,
      ...(participant ? { participant } : {}),
      ...(recipient ? { recipient } : {}),
      ...(type ? { type } : {}),
      ...(tag === "message" && me ? { from: me } : {}),
    },
  };
}

/** Some milliseconds to decrypt. */
const LONG_FRAME = 512 * 1024;

/**
 * Keeps incoming frames in order, so that a chat keeps its order (promise 4). Puts a queue before the library's
 * listener for received data, which must be the only one at that time. The library inflates a deflated frame in the
 * background and processes the next chunk meanwhile, so a plain frame could overtake a deflated one. `failed` is called
 * for a chunk that can't be read; the following ones are still read.
 */
export function serializeFrames(
  ws: Pick<EventEmitter, "listeners" | "off" | "on">,
  run: (work: () => Promise<void>) => Promise<void>,
  failed: (error: unknown) => void,
): void {
  const [receive] = ws.listeners("message");
  ws.off("message", receive!);
  const queue = new PQueue({ concurrency: 1 });
  ws.on("message", (data: Uint8Array) => {
    const read = async () => {
      // The first comes in the turn that put the frame together.
      for (let turn = 0; data.length > LONG_FRAME && turn < 2; turn++) await setImmediate();
      await run(async () => await receive!(data));
    };
    void queue.add(read).catch(failed);
  });
}

/** Corrects what the library would take wrongly in a message. Must be called before the library sees it. */
export function correctMessage(message: BinaryNode, creds: AuthenticationCreds & Renamed): void {
  const { attrs } = message;
  // The library processes messages missed while offline one at a time, but others in parallel, where they could
  // overtake. With the mark, every message waits for its turn.
  attrs.offline ??= "0";
  // The certificate of a business sender's name, which nothing here uses. The library reads it before it decrypts the
  // message, and refuses a message whose certificate is malformed. The network then drops the message for good.
  if (Array.isArray(message.content)) message.content = message.content.filter(({ tag }) => tag !== "verified_name");
  // The line's name in a message that another device sent before the line was renamed: the library would take it for a
  // new one.
  const { from = "", participant = from, t } = attrs;
  if (creds.renamedAt === undefined || !creds.me || !isOwn(participant, ownJids(creds))) return;
  if (Number(t) * 1000 <= creds.renamedAt) delete attrs.notify;
}
