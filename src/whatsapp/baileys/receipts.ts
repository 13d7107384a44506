/** Delivery and read receipts, read from the stanza itself: the library's events may wait in a buffer and get lost. */
import {
  areJidsSameUser,
  type BinaryNode,
  getBinaryNodeChildren,
  isJidGroup,
  jidNormalizedUser,
} from "@whiskeysockets/baileys";
import type { Receipt } from "../connection.ts";

/** What a receipt's type says of a message that the line sent; types that are not here say nothing of that. */
const STATUS: Readonly<Record<string, Receipt["status"]>> = {
  "": "delivered",
  // Delivered to a device whose app is in the background.
  inactive: "delivered",
  read: "read",
  played: "read",
};

/** The line's own addresses. */
export interface OwnJids {
  id: string;
  lid?: string;
}

/** What a receipt stanza says of messages that the line sent. Empty when it is about anything else. */
export function receiptsOf(stanza: BinaryNode, me: OwnJids, now: number): Receipt[] {
  const { id, from, participant, recipient, type = "", t } = stanza.attrs;
  const status = STATUS[type];
  const by = participant ?? from;
  // With a recipient it comes from another device of the line's owner, about what that device did.
  if (!id || !from || !by || !status || recipient || isOwn(by, me)) return [];
  const more = Array.isArray(stanza.content) ? getBinaryNodeChildren(stanza.content[0], "item") : [];
  return [id, ...more.map((item) => item.attrs.id)].filter((id) => id !== undefined).map((networkId) => ({
    networkId,
    chat: isJidGroup(from) ? from : jidNormalizedUser(from),
    participant: isJidGroup(from) && participant ? jidNormalizedUser(participant) : null,
    status,
    at: t ? Number(t) * 1000 : now,
  }));
}

function isOwn(jid: string, me: OwnJids): boolean {
  return areJidsSameUser(jid, me.id) || (me.lid !== undefined && areJidsSameUser(jid, me.lid));
}
