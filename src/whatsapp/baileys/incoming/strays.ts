/**
 * Stanzas that the library ignores or handles wrongly. The network keeps a stanza that is not acknowledged: it cuts the
 * connection to deliver it again, and holds back everything after it.
 *
 * - A stanza without a handler is acknowledged as other clients do, counted by tag and type, and logged once.
 * - A stanza whose id no app would choose is acknowledged with exactly that id, which the library can't do, and
 *   dropped.
 * - Status posts are not messages to the line. For those that it can't decrypt, the library asks for a retry and
 *   refuses them.
 * - `<downgrade_webclient>` only concerns links that are not complete. The library ends every connection on it.
 * - `<success>` logs in a linked line. Before that, the library would take the line for connected without a number.
 */
import { detached } from "../../../base/retry.ts";
import {
  type AuthenticationCreds,
  type BinaryNode,
  isJidStatusBroadcast,
  type WASocket,
} from "@whiskeysockets/baileys";
import type { Log } from "../../../runtime.ts";
import { isLinked } from "../auth_state.ts";
import { encodePlainly, isMistaken } from "../repairs/codec.ts";
import { withhold } from "../stanza.ts";

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
/** Maximum number of pairs of tag and type that are counted separately: the network could invent any number. */
const MOST_PAIRS = 100;
const LONGEST_NAME = 40;
/**
 * The longest message or call id accepted. Senders choose their ids; a longer one than any app makes is unfit as a key.
 */
export const LONGEST_ID = 200;

/** Counts a stanza that has no handler. */
export type CountStray = (stanza: { tag: string; type: string }) => void;

/** Shared by all lines. Limits the number of pairs of tag and type, and logs each pair once. */
export function makeCountStray(count: CountStray, log: Log): CountStray {
  const known = new Set<string>();
  return (stanza) => {
    const tag = stanza.tag.slice(0, LONGEST_NAME);
    const type = stanza.type.slice(0, LONGEST_NAME);
    const pair = `${tag} ${type}`;
    if (!known.has(pair)) {
      if (known.size >= MOST_PAIRS) return count({ tag: "other", type: "" });
      known.add(pair);
      log.warn({ tag, type }, "the network sends a kind of stanza that is not handled");
    }
    count({ tag, type });
  };
}

export interface StraysOptions {
  socket: Pick<WASocket, "ws" | "sendNode" | "sendRawMessage">;
  creds: AuthenticationCreds;
  count: CountStray;
  log: Log;
}

/** Must be called before any listener other than the library's is added. */
export function takeStrays({ socket, creds, count, log }: StraysOptions): void {
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
    if (!TAGS.has(tag)) {
      acknowledge(stanza);
      count({ tag, type: attrs.type ?? "" });
    } else if (tag === "notification" && !NOTIFICATIONS.has(attrs.type ?? "")) {
      // The library acknowledges these, but only once it has an identity.
      if (!creds.me) acknowledge(stanza);
      count({ tag, type: attrs.type ?? "" });
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
