/**
 * Reads a decrypted message: its text, the file that it refers to, other details such as locations and polls, or the
 * earlier message that it changes.
 */
import { proto } from "@whiskeysockets/baileys";
import type { Attachment, PhoneFileKind, Stated } from "./attachment.ts";

/** The content of a message; parts that are absent are null, false or empty. */
export interface Content {
  /** Name of the protobuf field, such as `conversation` or `documentMessage`; `reaction` for a reaction. */
  type: string;
  text: string | null;
  caption: string | null;
  filename: string | null;
  mimetype: string | null;
  /** Whether the app plays this audio as a voice note. */
  voiceNote: boolean;
  /** The size stated in the message, known before the image is downloaded. */
  imageSize: { width: number; height: number } | null;
  /** Whether the message carries a preview to show until the file is downloaded. */
  hasPreview: boolean;
  /** `attachment` is null if the message does not say how to download and decrypt the file. */
  file: { kind: PhoneFileKind; attachment: Omit<Attachment, "url"> | null } | null;
  /** The picture of a link's preview, if it was uploaded. */
  previewFile: Stated | null;
  /** The secret with which votes on the poll are encrypted. */
  secret: Uint8Array | null;
  /** The message that this one replies to, and the quoted text. */
  quoted: { id: string; text: string | null } | null;
  /** JIDs. */
  mentions: readonly string[];
  /** Whether everybody in the group is mentioned. */
  mentionsAll: boolean;
  forwarded: boolean;
  viewOnce: boolean;
  /** Seconds after which it disappears; null: never. */
  expiration: number | null;
  /** When the chat's lifetime was set, as the sender knows it, Unix s. Without it, phones warn in a 1:1 chat. */
  expirationSetAt: number | null;
  location: { latitude: number; longitude: number; name: string | null; address: string | null } | null;
  contacts: { name: string; vcard: string }[] | null;
  poll: { question: string; options: string[]; multiple: boolean } | null;
  /** The small print below options. */
  footer: string | null;
  /** Options to tap, as buttons or in a list. */
  buttons: MenuOption[] | null;
  list: MenuOption[] | null;
  /** The message that is reacted to; an empty emoji removes the reaction. */
  reaction: { id: string; emoji: string } | null;
  linkPreview: ShownPreview | null;
  /** Length and waveform of a voice note. */
  voice: { seconds: number; waveform: number[] } | null;
}

interface ShownPreview {
  url: string;
  title: string | null;
  description: string | null;
  /** Whether a small picture came with the message. */
  hasPicture: boolean;
  /** SHA-256 of the uploaded picture, hex; null without one. */
  pictureSha256: string | null;
}

interface MenuOption {
  id: string;
  label: string;
  description: string | null;
}

/** Fields with data about the message rather than its content. */
const ENVELOPE_FIELDS = new Set(["messageContextInfo", "senderKeyDistributionMessage", "deviceSentMessage"]);

const WRAPPERS = [
  "documentWithCaptionMessage",
  "ephemeralMessage",
  "viewOnceMessage",
  "viewOnceMessageV2",
  "viewOnceMessageV2Extension",
  "editedMessage",
] as const;

const FILE_FIELDS = [
  ["imageMessage", "image"],
  ["videoMessage", "video"],
  ["audioMessage", "audio"],
  ["documentMessage", "document"],
  ["stickerMessage", "sticker"],
] as const;

/** Returns the content; null if the message only carries keys. */
export function readContent(message: proto.IMessage): Content | null {
  const { inner, viewOnce } = unwrap(message);
  const field = Object.entries(inner).find(([field, value]) => value != null && !ENVELOPE_FIELDS.has(field))?.[0];
  if (!field) return null;
  const { width, height } = inner.imageMessage ?? {};
  const content: Content = {
    ...detailsOf(inner, { viewOnce }),
    type: field === "reactionMessage" ? "reaction" : field,
    text: textOf(inner),
    caption: null,
    filename: null,
    mimetype: null,
    voiceNote: inner.audioMessage?.ptt ?? false,
    imageSize: width && height ? { width, height } : null,
    hasPreview: false,
    file: null,
    previewFile: previewFileOf(inner),
    secret: inner.messageContextInfo?.messageSecret ?? message.messageContextInfo?.messageSecret ?? null,
  };
  for (const [field, kind] of FILE_FIELDS) {
    const media = inner[field];
    if (!media) continue;
    content.mimetype = media.mimetype ?? null;
    content.caption = ("caption" in media && media.caption) || null;
    content.filename = ("fileName" in media && media.fileName) || null;
    content.hasPreview = "jpegThumbnail" in media && (media.jpegThumbnail?.length ?? 0) > 0;
    const { mediaKey, fileSha256, fileEncSha256, directPath } = media;
    const fileLength = Number(media.fileLength ?? 0);
    const attachment = mediaKey && fileSha256 && fileEncSha256 && directPath
      ? { mediaKey, fileSha256, fileEncSha256, fileLength, directPath }
      : null;
    content.file = { kind, attachment };
  }
  return content;
}

function previewFileOf({ extendedTextMessage: text }: proto.IMessage): Stated | null {
  const { mediaKey, thumbnailSha256, thumbnailEncSha256, thumbnailDirectPath } = text ?? {};
  if (!mediaKey || !thumbnailSha256 || !thumbnailEncSha256 || !thumbnailDirectPath) return null;
  return {
    mediaKey,
    fileSha256: thumbnailSha256,
    fileEncSha256: thumbnailEncSha256,
    fileLength: null,
    directPath: thumbnailDirectPath,
  };
}

/** Returns the message without its wrappers. */
export function unwrap(message: proto.IMessage, viewOnce = false): { inner: proto.IMessage; viewOnce: boolean } {
  const wrapper = WRAPPERS.find((field) => message[field]?.message);
  const inner = wrapper && message[wrapper]?.message;
  return inner ? unwrap(inner, viewOnce || wrapper.startsWith("viewOnce")) : { inner: message, viewOnce };
}

function textOf(message: proto.IMessage): string | null {
  return message.conversation || message.extendedTextMessage?.text || message.reactionMessage?.text ||
    message.interactiveMessage?.body?.text || null;
}

/** An edit or a deletion: the message that it changes, and the new content, or null for a deletion. */
export interface Amendment {
  target: proto.IMessageKey;
  edited: proto.IMessage | null;
}

const { Type } = proto.Message.ProtocolMessage;

/** Returns the edit or deletion in a message; null if it is neither. */
export function amendmentOf({ protocolMessage }: proto.IMessage): Amendment | null {
  const { type, key, editedMessage } = protocolMessage ?? {};
  if (!key?.id) return null;
  if (type === Type.REVOKE) return { target: key, edited: null };
  return type === Type.MESSAGE_EDIT && editedMessage ? { target: key, edited: editedMessage } : null;
}

/** Returns the details of `inner`, a message without its wrappers; `viewOnce`: one of them was "view once". */
function detailsOf(inner: proto.IMessage, { viewOnce }: { viewOnce: boolean }) {
  const { locationMessage: place, reactionMessage: reaction, extendedTextMessage: text } = inner;
  const poll = pollOf(inner);
  const cards = inner.contactMessage ? [inner.contactMessage] : inner.contactsArrayMessage?.contacts;
  const context = contextOf(inner);
  return {
    quoted: context?.stanzaId
      ? { id: context.stanzaId, text: context.quotedMessage ? textIn(unwrap(context.quotedMessage).inner) : null }
      : null,
    mentions: context?.mentionedJid ?? [],
    mentionsAll: context?.nonJidMentions === 1,
    forwarded: context?.isForwarded ?? false,
    viewOnce,
    expiration: context?.expiration || null,
    expirationSetAt: Number(context?.ephemeralSettingTimestamp ?? 0) || null,
    location: place
      ? {
        latitude: place.degreesLatitude ?? 0,
        longitude: place.degreesLongitude ?? 0,
        name: place.name || null,
        address: place.address || null,
      }
      : null,
    contacts: cards?.map(({ displayName, vcard }) => ({ name: displayName ?? "", vcard: vcard ?? "" })) ?? null,
    poll: poll
      ? {
        question: poll.name ?? "",
        options: (poll.options ?? []).map(({ optionName }) => optionName ?? ""),
        multiple: poll.selectableOptionsCount !== 1,
      }
      : null,
    ...menuOf(inner),
    reaction: reaction?.key?.id ? { id: reaction.key.id, emoji: reaction.text ?? "" } : null,
    linkPreview: text?.matchedText
      ? {
        url: text.matchedText,
        title: text.title || null,
        description: text.description || null,
        hasPicture: (text.jpegThumbnail?.length ?? 0) > 0,
        pictureSha256: null,
      }
      : null,
    voice: inner.audioMessage?.ptt
      ? { seconds: inner.audioMessage.seconds ?? 0, waveform: [...inner.audioMessage.waveform ?? []] }
      : null,
  };
}

/** Returns the options of a native-flow message. */
function menuOf({ interactiveMessage: menu }: proto.IMessage): Pick<Content, "footer" | "buttons" | "list"> {
  const buttons: MenuOption[] = [];
  const list: MenuOption[] = [];
  for (const { name, buttonParamsJson } of menu?.nativeFlowMessage?.buttons ?? []) {
    const params = JSON.parse(buttonParamsJson ?? "{}");
    if (name === "quick_reply") buttons.push({ id: params.id, label: params.display_text, description: null });
    if (name !== "single_select") continue;
    for (const { rows } of params.sections) {
      for (const { id, title: label, description = null } of rows) list.push({ id, label, description });
    }
  }
  return {
    footer: menu?.footer?.text || null,
    buttons: buttons.length > 0 ? buttons : null,
    list: list.length > 0 ? list : null,
  };
}

export function pollOf(message: proto.IMessage): proto.Message.IPollCreationMessage | null {
  return message.pollCreationMessage ?? message.pollCreationMessageV2 ?? message.pollCreationMessageV3 ?? null;
}

/** Returns what a quotation of the message shows: its text, its caption, a location's name, or a poll's question. */
function textIn(message: proto.IMessage): string | null {
  const caption = message.imageMessage?.caption ?? message.videoMessage?.caption ?? message.documentMessage?.caption;
  return message.conversation || message.extendedTextMessage?.text || caption || message.locationMessage?.name ||
    message.contactMessage?.displayName || pollOf(message)?.name || null;
}

function contextOf(message: proto.IMessage): proto.IContextInfo | null {
  const parts: ({ contextInfo?: proto.IContextInfo | null } | null)[] = Object.values(message);
  return parts.find((part) => part?.contextInfo)?.contextInfo ?? null;
}
