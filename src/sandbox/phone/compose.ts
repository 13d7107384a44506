/**
 * Builds the WhatsApp messages that the control API asks a phone to send: texts, files, protobuf messages as JSON, and
 * actions on existing messages: voting, reacting, editing, deleting for everyone.
 */
import { jidNormalizedUser, proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { invalid } from "../../errors.ts";
import type { Random } from "../../runtime.ts";
import { hkdf, sealGcm } from "../world/crypto.ts";
import { isGroup, isLid } from "../world/stanza.ts";
import { type PhoneFileKind, sendFile, type Transfers } from "./attachment.ts";
import { pollOf, unwrap } from "./content.ts";
import { type Edited, sealEdit } from "./sealed_edit.ts";
import type { PhoneContext } from "./context.ts";
import type { Received } from "./inbox.ts";

/** A message that a phone can be asked to send. `to`: digits, or the jid of a user or a group. */
export type PhoneMessage =
  & { to: string; hideNumber?: boolean }
  & (
    | { text: string }
    /** `file` is base64. */
    | { file: string; kind?: PhoneFileKind; filename?: string; mimetype?: string; caption?: string }
    /** A WhatsApp protobuf Message as JSON. */
    | { message: Record<string, unknown> }
  );

/** The default mimetype of each kind of file. */
const DEFAULT_MIMETYPES: Record<PhoneFileKind, string> = {
  image: "image/jpeg",
  video: "video/mp4",
  audio: "audio/ogg; codecs=opus",
  document: "application/octet-stream",
  sticker: "image/webp",
};

/** Builds a message. Throws Problem validation_failed for an invalid one, AttachmentError if the upload fails. */
export async function compose(message: PhoneMessage, context: Transfers): Promise<proto.IMessage> {
  if ("text" in message) {
    if (!message.text) throw invalid("text", "is empty");
    return { conversation: message.text, messageContextInfo: newSecret(context) };
  }
  if ("file" in message) {
    return { ...await composeFile(message, context), messageContextInfo: newSecret(context) };
  }
  return readMessage(message.message);
}

/** The secret of a message, with which its author seals what is added to it. */
function newSecret({ runtime }: Transfers): proto.IMessageContextInfo {
  return { messageSecret: runtime.random.bytes(32) };
}

async function composeFile(
  message: Extract<PhoneMessage, { file: string }>,
  context: Transfers,
): Promise<proto.IMessage> {
  const kind = message.kind ?? "document";
  const base64 = message.file.replace(/^data:[^,]*;base64,/, "");
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(base64)) throw invalid("file", "is not base64");
  const content = Buffer.from(base64, "base64");
  if (content.length === 0) throw invalid("file", "is empty");
  const caption = message.caption || undefined;
  const mimetype = message.mimetype ?? DEFAULT_MIMETYPES[kind];
  const file = { ...await sendFile(content, kind, context), mimetype };
  switch (kind) {
    case "image":
      return { imageMessage: { ...file, caption } };
    case "video":
      return { videoMessage: { ...file, caption } };
    case "audio":
      return { audioMessage: { ...file, ptt: mimetype.startsWith("audio/ogg") } };
    case "sticker":
      return { stickerMessage: file };
    case "document": {
      const fileName = message.filename ?? "file";
      const documentMessage = { ...file, fileName, title: fileName, caption };
      // The apps wrap a document if it has a caption.
      return caption ? { documentWithCaptionMessage: { message: { documentMessage } } } : { documentMessage };
    }
  }
}

function readMessage(json: Record<string, unknown>): proto.IMessage {
  let message: proto.Message;
  let size: number;
  try {
    message = proto.Message.fromObject(json);
    size = proto.Message.encode(message).finish().length;
  } catch {
    throw invalid("message", "does not fit WhatsApp's Message schema");
  }
  if (size === 0) throw invalid("message", "has no field of WhatsApp's Message schema");
  const dropped = droppedFrom(json, message);
  if (dropped) {
    throw invalid(
      ["message", ...dropped].join("."),
      "is not a field, or not a valid value, in WhatsApp's Message schema",
    );
  }
  return message;
}

/** Returns the path of a value that decoding dropped; null if none was dropped. */
function droppedFrom(json: object, read: object): string[] | null {
  for (const [name, given] of Object.entries(json)) {
    if (given === null || given === undefined || Array.isArray(given) && given.length === 0) continue;
    const taken = Object.getOwnPropertyDescriptor(read, name)?.value;
    if (taken === undefined) return [name];
    // The same bytes can be written in several ways.
    const isWhole = !(given instanceof Object && taken instanceof Object) || taken instanceof Uint8Array;
    const within = isWhole ? null : droppedFrom(given, taken);
    if (within) return [name, ...within];
  }
  return null;
}

/** Returns the stanza's `type` and the `mediatype` of its ciphertexts, which the network sees in plain text. */
export function wireType(message: proto.IMessage): { type: string; mediaType: string | null } {
  const { inner: content } = unwrap(message);
  const mediaType = MEDIA_TYPES.find(([field]) => content[field])?.[1] ?? null;
  if (content.audioMessage) return { type: "media", mediaType: content.audioMessage.ptt ? "ptt" : "audio" };
  if (mediaType) return { type: "media", mediaType };
  if (content.reactionMessage) return { type: "reaction", mediaType };
  if (pollOf(content) || content.pollUpdateMessage) return { type: "poll", mediaType };
  return { type: "text", mediaType };
}

const MEDIA_TYPES: [keyof proto.IMessage, string][] = [
  ["imageMessage", "image"],
  ["videoMessage", "video"],
  ["documentMessage", "document"],
  ["stickerMessage", "sticker"],
  ["contactMessage", "vcard"],
  ["contactsArrayMessage", "contact_array"],
  ["liveLocationMessage", "livelocation"],
];

/** Values of the `edit` attribute of a stanza that changes an earlier message. */
const EDIT = "1";
const SENDER_REVOKE = "7";

/** A message of the inbox that the phone answers, and whether it hides its number in that chat. */
export interface Addressed extends Received {
  key: proto.IMessageKey;
  hideNumber: boolean;
}

/** A message about another; `edit` is the stanza's attribute if it changes that one. */
export interface Composed {
  message: proto.IMessage;
  edit?: string | undefined;
}

/**
 * Composes a vote on a poll. The voter's address has the form (number or LID) in which the poll arrived, or is the LID
 * if the voter hides the number. Throws Problem validation_failed.
 */
export function composeVote(
  { item, stanza, content, key, hideNumber }: Addressed,
  options: readonly string[],
  { runtime, self }: PhoneContext,
): Composed {
  const { poll, secret } = content;
  if (!poll || !secret) throw invalid("id", "is not a poll");
  const unknown = options.find((name) => !poll.options.includes(name));
  if (unknown !== undefined) throw invalid("options", `"${unknown}" is not an option of the poll`);
  if (!poll.multiple && options.length > 1) throw invalid("options", "may name only one option of this poll");
  const creator = jidNormalizedUser(stanza.attrs.participant ?? stanza.attrs.from);
  const voter = hideNumber || isLid(creator) ? self.lid : self.jid;
  const vote = encryptVote({ pollId: item.id, secret, creator, voter, options }, runtime.random);
  const senderTimestampMs = runtime.clock.now();
  return { message: { pollUpdateMessage: { pollCreationMessageKey: key, vote, senderTimestampMs } } };
}

/** Composes the tap on an option of a message. Throws Problem validation_failed. */
export function composeTap({ item, content, key }: Addressed, choice: string): Composed {
  const options = content.buttons ?? content.list;
  if (!options) throw invalid("id", "is not a message with options to tap");
  const option = options.find(({ id }) => id === choice);
  if (!option) throw invalid("choice", `"${choice}" is not the id of an option`);
  return {
    message: {
      interactiveResponseMessage: {
        body: { text: option.label },
        nativeFlowResponseMessage: {
          name: content.buttons ? "quick_reply" : "single_select",
          paramsJson: JSON.stringify({ id: option.id, description: option.description ?? "" }),
          version: 3,
        },
        contextInfo: {
          stanzaId: item.id,
          participant: key.participant ?? key.remoteJid,
          quotedMessage: { conversation: item.text ?? "" },
        },
      },
    },
  };
}

export function composeReaction({ key }: Addressed, text: string, { runtime }: PhoneContext): Composed {
  const senderTimestampMs = runtime.clock.now();
  return {
    message: { reactionMessage: { key, text, senderTimestampMs } },
    edit: text === "" ? SENDER_REVOKE : undefined,
  };
}

/** `original` seals the edit, as today's apps do; null leaves it plain. */
export function composeEdit(
  { key, text, original }: {
    key: proto.IMessageKey;
    text: string;
    original: Pick<Edited, "author"> & { message: proto.IMessage } | null;
  },
  { runtime }: PhoneContext,
): Composed {
  const protocolMessage = {
    key,
    type: proto.Message.ProtocolMessage.Type.MESSAGE_EDIT,
    editedMessage: { conversation: text },
    timestampMs: runtime.clock.now(),
  };
  const secret = original?.message.messageContextInfo?.messageSecret;
  if (!secret) return { message: { editedMessage: { message: { protocolMessage } } }, edit: EDIT };
  return {
    message: sealEdit({ protocolMessage }, { key, secret, author: original.author }, runtime.random),
    edit: EDIT,
  };
}

export function composeRevocation(key: proto.IMessageKey): Composed {
  const protocolMessage = { key, type: proto.Message.ProtocolMessage.Type.REVOKE };
  return { message: { protocolMessage }, edit: SENDER_REVOKE };
}

/** Returns the key by which the phone refers to a received message in its chat. */
export function keyOf({ item, stanza }: Received): proto.IMessageKey {
  const { from, participant } = stanza.attrs;
  const remoteJid = isGroup(from) ? from : item.fromMe ? item.chat : jidNormalizedUser(from);
  const author = isGroup(from) ? jidNormalizedUser(participant) : undefined;
  return { remoteJid, fromMe: item.fromMe, id: item.id, participant: author };
}

interface Ballot {
  pollId: string;
  /** 32 bytes. */
  secret: Uint8Array;
  /** Jids without device, in the form that the poll's chat uses. */
  creator: string;
  voter: string;
  /** Names of the chosen options. */
  options: readonly string[];
}

/**
 * Encrypts a vote, in the form of `pollUpdateMessage.vote`, with the poll's secret, so that only those who received the
 * poll can read it.
 */
export function encryptVote(
  { pollId, secret, creator, voter, options }: Ballot,
  random: Random,
): proto.Message.IPollEncValue {
  const selectedOptions = options.map((name) => createHash("sha256").update(name).digest());
  const vote = proto.Message.PollVoteMessage.encode({ selectedOptions }).finish();
  const key = hkdf(secret, "", `${pollId}${creator}${voter}Poll Vote`);
  const encIv = random.bytes(12);
  return { encPayload: sealGcm(vote, { key, iv: encIv, context: Buffer.from(`${pollId}\0${voter}`) }), encIv };
}
