/**
 * Stanzas that the library does not take, or takes wrongly. The network keeps what nobody acknowledges: it cuts the line
 * to give it again, and holds back what comes after it.
 *
 * - Whatever has no place here is acknowledged as other clients do, counted by tag and type, and named once in the log.
 * - Status posts are no messages to the line. The library asks for those that it can't read again and refuses them.
 * - `<downgrade_webclient>` is for links that are not complete. The library ends any connection for it.
 * - `<success>` logs in a line that is linked. Before that the library takes the line for connected, without a number.
 */
import { detached } from "../../../base/detached.ts";
import {
  type AuthenticationCreds,
  type BinaryNode,
  isJidStatusBroadcast,
  type WASocket,
} from "@whiskeysockets/baileys";
import type { Log } from "../../../runtime.ts";
import { isLinked } from "../auth_state.ts";
import { withhold } from "../stanza.ts";

/** Tags that the library, or this adapter, has a place for. */
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
/** Pairs of tag and type that are told apart; the network might make up any number. */
const MOST_PAIRS = 100;
const LONGEST_NAME = 40;
/** Others choose the ids of their messages and calls; one that is longer than any app makes is no key to keep it by. */
export const LONGEST_ID = 200;

/** Counts a stanza that nobody handles. */
export type CountStray = (stanza: { tag: string; type: string }) => void;

/** One for all lines: bounds how many pairs of tag and type there are, and logs each once. */
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

interface StraysOptions {
  socket: Pick<WASocket, "ws" | "sendNode">;
  creds: AuthenticationCreds;
  count: CountStray;
  log: Log;
}

/** To be called before anybody but the library listens to the socket. */
export function takeStrays({ socket, creds, count, log }: StraysOptions): void {
  const { ws } = socket;

  function acknowledge(stanza: BinaryNode): void {
    if (!stanza.attrs.id || !stanza.attrs.from) return;
    void detached(socket.sendNode(ackOf(stanza, creds.me?.id)), (failure) => {
      log.debug(failure, "a stanza could not be acknowledged");
    });
  }

  ws.on("frame", (stanza: BinaryNode | Uint8Array) => {
    if (stanza instanceof Uint8Array) return;
    const { tag, attrs } = stanza;
    if (!TAGS.has(tag)) {
      acknowledge(stanza);
      count({ tag, type: attrs.type ?? "" });
    } else if (tag === "notification" && !NOTIFICATIONS.has(attrs.type ?? "")) {
      // The library acknowledges them, as soon as it has an identity.
      if (!creds.me) acknowledge(stanza);
      count({ tag, type: attrs.type ?? "" });
    } else if (tag === "iq" && attrs.type === "get" && attrs.xmlns === "urn:xmpp:ping" && attrs.id) {
      const pong = { tag: "iq", attrs: { id: attrs.id, type: "result", to: attrs.from ?? "" } };
      void detached(socket.sendNode(pong), (failure) => log.debug(failure, "a ping could not be answered"));
    }
  });

  withhold(ws, "CB:message", (stanza) => {
    const { from = "", id = "" } = stanza.attrs;
    if (!isJidStatusBroadcast(from) && id.length <= LONGEST_ID) return false;
    acknowledge(stanza);
    return true;
  });

  withhold(ws, "CB:ib,,downgrade_webclient", () => isLinked(creds));

  withhold(ws, "CB:success", () => {
    if (isLinked(creds)) return false;
    log.info("the network let the line in before its link was complete");
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
