/** Reads the content of a decrypted message: its type, its text, and the file that it refers to. */
import type { proto } from "@whiskeysockets/baileys";
import type { MessageContent } from "../world/inbox.ts";
import type { Attachment, PhoneFileKind } from "./attachment.ts";
import { detailsOf } from "./details.ts";

export interface Content extends MessageContent {
  /** Null if there is no file. `attachment` is null if the message does not say how to download and decrypt it. */
  file: { kind: PhoneFileKind; attachment: Omit<Attachment, "url"> | null } | null;
  /** The secret with which votes on the poll are encrypted. */
  secret: Uint8Array | null;
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

/** Returns the message without its wrappers. */
export function unwrap(message: proto.IMessage, viewOnce = false): { inner: proto.IMessage; viewOnce: boolean } {
  const wrapper = WRAPPERS.find((field) => message[field]?.message);
  const inner = wrapper && message[wrapper]?.message;
  return inner ? unwrap(inner, viewOnce || wrapper.startsWith("viewOnce")) : { inner: message, viewOnce };
}

function textOf(message: proto.IMessage): string | null {
  return message.conversation || message.extendedTextMessage?.text || message.reactionMessage?.text || null;
}
