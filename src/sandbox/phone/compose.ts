/**
 * Builds the WhatsApp messages that the control API asks a phone to send: texts, files, or protobuf messages as JSON.
 */
import { proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { invalid } from "../../errors.ts";
import { FILE_KINDS, type PhoneFileKind, sendFile, type Transfers } from "./attachment.ts";

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

type FileMessage = Extract<PhoneMessage, { file: string }>;

/** The default mimetype of each kind of file. */
const DEFAULT_MIMETYPES: Record<PhoneFileKind, string> = {
  image: "image/jpeg",
  video: "video/mp4",
  audio: "audio/ogg; codecs=opus",
  document: "application/octet-stream",
  sticker: "image/webp",
};

/** Builds a message. Throws Problem validation_failed for an invalid one, AttachmentError if the upload fails. */
export async function compose(
  message: PhoneMessage,
  context: Transfers,
): Promise<proto.IMessage> {
  if ("text" in message) {
    if (!message.text) throw invalid("text", "is empty");
    return { conversation: message.text };
  }
  if ("file" in message) return await composeFile(message, context);
  return readMessage(message.message);
}

async function composeFile(
  message: FileMessage,
  context: Transfers,
): Promise<proto.IMessage> {
  const kind = message.kind ?? "document";
  if (!FILE_KINDS.includes(kind)) throw invalid("kind", `must be one of ${FILE_KINDS.join(", ")}`);
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
  if (size === 0) throw invalid("message", "holds no field of WhatsApp's Message schema");
  const dropped = droppedFrom(json, message);
  if (dropped) {
    throw invalid(["message", ...dropped].join("."), "is no field, or no value, of WhatsApp's Message schema");
  }
  return message;
}

/** Returns the path of a value that decoding dropped; null if none was dropped. */
function droppedFrom(json: object, read: object): string[] | null {
  for (const [name, given] of Object.entries(json)) {
    if (given === null || given === undefined || Array.isArray(given) && given.length === 0) continue;
    const taken = Object.hasOwn(read, name) ? (read as Record<string, unknown>)[name] : undefined;
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
  const content = message.documentWithCaptionMessage?.message ?? message;
  const mediaType = MEDIA_TYPES.find(([field]) => content[field])?.[1] ?? null;
  if (content.audioMessage) return { type: "media", mediaType: content.audioMessage.ptt ? "ptt" : "audio" };
  if (mediaType) return { type: "media", mediaType };
  if (content.reactionMessage) return { type: "reaction", mediaType };
  if (content.pollCreationMessage || content.pollUpdateMessage) return { type: "poll", mediaType };
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
