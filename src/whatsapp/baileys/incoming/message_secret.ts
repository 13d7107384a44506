/**
 * What is added to a message later and encrypted with the secret that is part of it: votes, edits, reactions, comments,
 * answers to events. Everybody in the chat has the secret, so that decryption is no authorization.
 */
import { Buffer } from "node:buffer";
import { createHash, hkdfSync } from "node:crypto";
import { aesDecryptGCM, isJidGroup, jidNormalizedUser, proto } from "@whiskeysockets/baileys";
import type { LineRows } from "../rows.ts";
import { findReceived, findSent } from "../stored_messages.ts";
import { bounded } from "./bounded.ts";
import { namedBy, pollIn, unwrapped } from "./content.ts";
import type { Message } from "./kinds/kinds.ts";

/** A message to which something can be added. */
export interface Original {
  networkId: string;
  /** JID of the chat; null if unknown. */
  chat: string | null;
  message: proto.IMessage;
  secret: Uint8Array;
  /** JIDs of the author; empty for the line. */
  authors: readonly string[];
}

/** Whose addition it is: all addresses of the person, and whether the line's owner is meant. */
export interface Adder {
  chat: string;
  addresses: readonly string[];
  fromMe: boolean;
  /** All addresses of the line's owner. */
  me: readonly string[];
}

/** Finds a message with its secret; null if it was never seen, came without one, or too long ago. Throws StoreError. */
export async function findOriginal(line: LineRows, networkId: string): Promise<Original | null> {
  // Sent messages take precedence, because senders choose the ids of received ones and could reuse such an id.
  const sent = await findSent(line, networkId);
  if (sent) return originalOf(networkId, sent.message, { chat: sent.chat, authors: [] });
  const received = await findReceived(line, networkId);
  if (!received) return null;
  const { chat, participant, number, fromMe } = received;
  const authors = fromMe ? [] : [participant ?? chat, ...(number ? [`${number}@s.whatsapp.net`] : [])];
  return originalOf(networkId, received.message, { chat, authors });
}

function originalOf(
  networkId: string,
  message: proto.IMessage,
  of: Pick<Original, "chat" | "authors">,
): Original | null {
  const inner = unwrapped(message);
  const secret = (inner.messageContextInfo ?? message.messageContextInfo)?.messageSecret;
  return secret?.length ? { networkId, message: inner, secret, ...of } : null;
}

/** The words that the network puts into the keys. */
type Use =
  | "Poll Vote"
  | "Event Response"
  | "Enc Reaction"
  | "Enc Comment"
  | "Message Edit"
  | "Event Edit"
  | "Poll Edit"
  | "Poll Add Option";

/** Those in which the id of the original and the adder are authenticated too. */
const AUTHENTICATED: ReadonlySet<Use> = new Set(["Poll Vote", "Event Response"]);
const IV_BYTES = 12;
const TAG_BYTES = 16;

interface Box {
  encPayload?: Uint8Array | null;
  encIv?: Uint8Array | null;
}

/** Returns the key of an addition. `author` and `adder` are JIDs without a device. */
export function keyOf(
  use: Use,
  of: { secret: Uint8Array; networkId: string; author: string; adder: string },
): Uint8Array {
  const info = `${of.networkId}${of.author}${of.adder}${use}`;
  return new Uint8Array(hkdfSync("sha256", of.secret, new Uint8Array(), info, 32));
}

/**
 * Opens an addition to the original; null if it can't be opened. Its key depends on author and adder, each named by
 * number or by LID as the adder's app saw them, so all their possible addresses are tried.
 */
function open(use: Use, { encPayload, encIv }: Box, original: Original, { addresses, me }: Adder): Uint8Array | null {
  if (!encPayload || encPayload.length < TAG_BYTES || encIv?.length !== IV_BYTES) return null;
  const { networkId, secret, authors } = original;
  for (const author of normalized([...authors, ...me])) {
    for (const adder of normalized(addresses)) {
      const key = keyOf(use, { secret, networkId, author, adder });
      const authenticated = Buffer.from(AUTHENTICATED.has(use) ? `${networkId}\0${adder}` : "");
      try {
        return aesDecryptGCM(encPayload, key, encIv, authenticated);
      } catch {
        // Encrypted for other addresses: try the next.
      }
    }
  }
  return null;
}

/** Whether an addition from this chat may count. A member of a group could pass its secrets to outsiders. */
function isOfChat({ chat }: Original, from: string): boolean {
  return chat === null || chat === from || !(isJidGroup(chat) || isJidGroup(from));
}

/** Only the author may edit. */
function isAuthor({ authors }: Original, { addresses, fromMe }: Adder): boolean {
  if (fromMe || authors.length === 0) return fromMe && authors.length === 0;
  return !normalized(authors).isDisjointFrom(normalized(addresses));
}

export type FindOriginal = (networkId: string) => Promise<Original | null>;

/** Finds the original that a key names, if the addition may count. */
async function originalFor(
  key: proto.IMessageKey | null | undefined,
  adder: Adder,
  find: FindOriginal,
): Promise<Original | null> {
  const id = namedBy(key);
  const original = id === null ? null : await find(id);
  return original && isOfChat(original, adder.chat) ? original : null;
}

const { SecretEncType } = proto.Message.SecretEncryptedMessage;
/** By type; those that the library has no name for are kept as numbers. */
const EDITS: Readonly<Record<number, Use>> = {
  [SecretEncType.EVENT_EDIT]: "Event Edit",
  [SecretEncType.MESSAGE_EDIT]: "Message Edit",
  4: "Poll Edit",
  5: "Poll Add Option",
};

/**
 * Returns the message in the clear that a sealed one stands for: an edit, a reaction, a comment or an answer to an
 * event. Null if it can't be opened or is not the sender's to make; the message itself if it is not sealed.
 */
export async function unsealed(
  message: proto.IMessage,
  adder: Adder,
  find: FindOriginal,
): Promise<proto.IMessage | null> {
  const inner = unwrapped(message);
  const { secretEncryptedMessage, encReactionMessage, encCommentMessage, encEventResponseMessage } = inner;
  if (secretEncryptedMessage) return await editOf(secretEncryptedMessage, adder, find);
  if (encReactionMessage) {
    return await addition("Enc Reaction", encReactionMessage, { adder, find }, (plain, key) => ({
      reactionMessage: { ...proto.Message.ReactionMessage.decode(bounded(plain)), key },
    }));
  }
  if (encCommentMessage) {
    return await addition("Enc Comment", encCommentMessage, { adder, find }, (plain, targetMessageKey) => ({
      commentMessage: { message: proto.Message.decode(bounded(plain)), targetMessageKey },
    }));
  }
  if (!encEventResponseMessage) return message;
  const box = { ...encEventResponseMessage, targetMessageKey: encEventResponseMessage.eventCreationMessageKey };
  return await addition("Event Response", box, { adder, find }, (plain, key) => ({
    eventResponse: { ...proto.Message.EventResponseMessage.decode(bounded(plain)), key },
  }));
}

async function addition(
  use: Use,
  box: Box & { targetMessageKey?: proto.IMessageKey | null },
  { adder, find }: { adder: Adder; find: FindOriginal },
  read: (plain: Uint8Array, key: proto.IMessageKey) => Message,
): Promise<Message | null> {
  const original = await originalFor(box.targetMessageKey, adder, find);
  const plain = original && open(use, box, original, adder);
  if (!plain) return null;
  // From the line's point of view: the key in the addition is from the adder's.
  const { networkId, authors: [author] } = original;
  const participant = isJidGroup(adder.chat) ? author : undefined;
  return read(plain, { id: networkId, fromMe: author === undefined, ...(participant && { participant }) });
}

/** Returns the edit as a plain one. Edits of an event or a poll carry the whole new message. */
async function editOf(
  edit: proto.Message.ISecretEncryptedMessage,
  adder: Adder,
  find: FindOriginal,
): Promise<proto.IMessage | null> {
  const use = EDITS[edit.secretEncType ?? 0];
  const original = await originalFor(edit.targetMessageKey, adder, find);
  if (!use || !original || !isAuthor(original, adder)) return null;
  const plain = open(use, edit, original, adder);
  if (!plain) return null;
  const message = proto.Message.decode(bounded(plain));
  const { protocolMessage } = message;
  if (protocolMessage) return protocolMessage.key?.id === original.networkId ? message : null;
  const key = { id: original.networkId };
  return { protocolMessage: { type: proto.Message.ProtocolMessage.Type.MESSAGE_EDIT, key, editedMessage: message } };
}

/**
 * Returns the options that a vote chooses, in the order of the poll; an empty list takes the vote back. Null if it can't
 * be opened or chooses more options than allowed, which only a forged app does.
 */
export async function readVote(
  { vote, pollCreationMessageKey }: proto.Message.IPollUpdateMessage,
  adder: Adder,
  find: FindOriginal,
): Promise<{ target: string; options: string[] } | null> {
  const original = await originalFor(pollCreationMessageKey, adder, find);
  const poll = original && pollIn(original.message);
  const plain = poll && vote && open("Poll Vote", vote, original, adder);
  if (!plain) return null;
  const { selectedOptions } = proto.Message.PollVoteMessage.decode(bounded(plain));
  const chosen = new Set((selectedOptions ?? []).map((digest) => Buffer.from(digest).toString("hex")));
  const names = (poll.options ?? []).map(({ optionName }) => optionName ?? "");
  const options = names.filter((option) => chosen.has(createHash("sha256").update(option).digest("hex")));
  const selectable = poll.selectableOptionsCount ?? 0;
  if (selectable > 0 && new Set(options).size > selectable) return null;
  return { target: original.networkId, options };
}

function normalized(jids: readonly string[]): Set<string> {
  return new Set(jids.map((jid) => jidNormalizedUser(jid)).filter((jid) => jid !== ""));
}
