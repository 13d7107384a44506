/**
 * What the network is told about a message that it cannot read: its type, whether it changes another one, and the token
 * by which it can verify a report.
 */
import { Buffer } from "node:buffer";
import { type BinaryNode, normalizeMessageContent, proto } from "@whiskeysockets/baileys";
import { getMessageReportingToken } from "@whiskeysockets/baileys/lib/Utils/reporting-utils.js";
import { pollIn } from "../incoming/content.ts";

/** Values of the stanza's `edit` attribute, for a message that changes an earlier one. */
const EDITED = "1";
const REVOKED = "7";
const REVOKED_BY_ADMIN = "8";
/** What the network demands beside a native-flow message; without it, it refuses the message with 479. */
const NATIVE_FLOW: BinaryNode = {
  tag: "biz",
  attrs: {},
  content: [
    {
      tag: "interactive",
      attrs: { type: "native_flow", v: "1" },
      content: [{ tag: "native_flow", attrs: { v: "9", name: "mixed" } }],
    },
    { tag: "quality_control", attrs: { source_type: "third_party" } },
  ],
};
const MEDIA_TYPES = {
  imageMessage: "image",
  videoMessage: "video",
  audioMessage: "audio",
  contactMessage: "vcard",
  documentMessage: "document",
  contactsArrayMessage: "contact_array",
  stickerMessage: "sticker",
} as const satisfies { [Field in keyof proto.IMessage]?: string };

interface Marks {
  attrs: { type: string; edit?: string };
  /** Attributes of each ciphertext. */
  enc: { mediatype?: string; "decrypt-fail"?: "hide" };
  nodes: BinaryNode[];
}

/** Returns the parts of the stanza that depend on the message's content. */
export function marksOf(content: proto.IMessage): Marks {
  const inner = normalizeMessageContent(content) ?? content;
  const mediatype = mediaTypeOf(inner);
  const isPoll = Boolean(pollIn(content));
  const isViewOnce = Boolean(content.viewOnceMessageV2 ?? content.viewOnceMessageV2Extension);
  const edit = editOf(inner);
  const type = inner.reactionMessage ? "reaction" : isPoll ? "poll" : mediatype ? "media" : "text";
  return {
    attrs: { type, ...(edit ? { edit } : {}) },
    enc: {
      ...(mediatype ? { mediatype } : {}),
      // A device that cannot read a change shows nothing in its place.
      ...(inner.reactionMessage || inner.protocolMessage ? { "decrypt-fail": "hide" } : {}),
    },
    nodes: [
      ...(isPoll ? [{ tag: "meta", attrs: { polltype: "creation" } }] : []),
      ...(isViewOnce ? [{ tag: "meta", attrs: { view_once: "true" } }] : []),
      ...(content.interactiveMessage ? [NATIVE_FLOW] : []),
    ],
  };
}

function mediaTypeOf(inner: proto.IMessage): string | null {
  if (inner.extendedTextMessage?.matchedText) return "url";
  if (inner.audioMessage?.ptt) return "ptt";
  const field = (Object.keys(MEDIA_TYPES) as (keyof typeof MEDIA_TYPES)[]).find((field) => inner[field]);
  return field ? MEDIA_TYPES[field] : null;
}

function editOf({ protocolMessage: amendment, reactionMessage: reaction }: proto.IMessage): string | null {
  if (reaction) return reaction.text ? null : REVOKED;
  if (!amendment) return null;
  return amendment.editedMessage ? EDITED : amendment.key?.fromMe ? REVOKED : REVOKED_BY_ADMIN;
}

/**
 * Returns the message as the library has to see it. It derives the marks of ciphertexts from the fields that it reads,
 * and adds a reporting token that the network cannot verify. Encoding writes own fields only, so inherited ones change
 * what it derives and nothing of what is sent.
 */
export function asLibraryReads(content: proto.IMessage): proto.IMessage {
  const { mediatype, "decrypt-fail": hides } = marksOf(content).enc;
  const field = Object.entries(MEDIA_TYPES).find(([, type]) => type === mediatype)?.[0];
  const hints: proto.IMessage = {
    encEventResponseMessage: {}, // has no reporting token
    ...(hides ? { pinInChatMessage: {} } : {}), // is hidden where it cannot be read
    ...(mediatype === "url" ? { groupInviteMessage: {} } : {}), // is of media type `url`
    ...(mediatype === "ptt" ? { audioMessage: { ptt: true } } : {}),
    ...(field ? { [field]: {} } : {}),
  };
  return Object.assign(Object.create(hints), content);
}

/**
 * Returns the token with which the network can verify the message if its recipient reports it, as WhatsApp Web derives
 * it: from the secret, the ids and the unpadded message; empty if the message has none. `me` and `to` are JIDs without
 * device.
 */
export async function reportingToken(
  content: proto.IMessage,
  { id, me, to }: { id: string; me: string; to: string },
): Promise<BinaryNode[]> {
  if (content.reactionMessage) return [];
  const key = { id, fromMe: true, remoteJid: me, participant: to };
  const token = await getMessageReportingToken(Buffer.from(proto.Message.encode(content).finish()), content, key);
  return token ? [token] : [];
}
