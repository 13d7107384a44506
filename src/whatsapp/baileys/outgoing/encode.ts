/**
 * Encodes an outgoing body as the network's message, one encoder per kind. The library's own encoder is not used,
 * because it reads files by address, fetches previews of links in texts, and leaves encrypted copies in the system's
 * temporary folder.
 */
import { open } from "node:fs/promises";
import { normalizeMessageContent, proto } from "@whiskeysockets/baileys";
import { essence, HEAD_BYTES, isOggOpus } from "../../../base/file_types.ts";
import { vcardText } from "../../../base/vcard.ts";
import type { ContactCard, FileBody, MessageKey, Outgoing, OutgoingBody } from "../../outgoing.ts";
import { type ContextTools, forwarded, withContext } from "./context_info.ts";
import { encryptFile } from "./media_upload.ts";

/**
 * Length of the message secret, which all present-day clients send. Receivers derive from it the keys of reports,
 * reactions and votes. It is stored with the sent message, so that votes can be read after a restart.
 */
const SECRET_BYTES = 32;
/** Opaque green, as 0xAARRGGBB. */
const STATUS_GROUND = 0xff075e54;
/** The container of voice notes, and the type by which phones know one. */
const OGG = "audio/ogg";
const VOICE = "audio/ogg; codecs=opus";

/** What opens a list; a sign, because the language of the chat is not known. */
const LIST_TITLE = "☰";

/** The message to be forwarded is no longer stored. */
export class OriginalGone extends Error {
  override name = "OriginalGone";
}

/** The tools of an encoder. The signal inherited from `ContextTools` also cancels an upload. */
export interface EncodeTools extends ContextTools {
  /** JID of the chat that the message goes to. */
  chat: string;
  /** Finds a message that a line sent or received; null if it is no longer stored. Throws StoreError. */
  source(of: { lineId: string; networkId: string }): Promise<proto.IMessage | null>;
}

type Encoders = {
  [K in OutgoingBody["kind"]]: (
    body: Extract<OutgoingBody, { kind: K }>,
    tools: EncodeTools,
  ) => proto.IMessage | Promise<proto.IMessage>;
};

const ENCODERS: Encoders = {
  text: ({ text }) => ({ extendedTextMessage: { text } }),
  image: async (body, tools) => ({ imageMessage: { ...await encodeFile(body, tools), ...captionOf(body) } }),
  video: async (body, tools) => ({ videoMessage: { ...await encodeFile(body, tools), ...captionOf(body) } }),
  audio: async (body, tools) => ({ audioMessage: await encodeFile(body, tools) }),
  voice: async (body, tools) => ({ audioMessage: { ...await encodeFile(body, tools), ptt: true } }),
  sticker: async (body, tools) => ({ stickerMessage: await encodeFile(body, tools) }),
  document: async (body, tools) => {
    const { filename } = body;
    const file = { ...await encodeFile(body, tools), fileName: filename, title: filename };
    return { documentMessage: { ...file, ...captionOf(body) } };
  },
  location: ({ latitude, longitude, name, address }) => ({
    locationMessage: { degreesLatitude: latitude, degreesLongitude: longitude, name, address },
  }),
  contact: ({ contacts }) => {
    const cards = contacts.map((card) => ({ displayName: card.name, vcard: vcardOf(card) }));
    if (cards.length === 1) return { contactMessage: cards[0] };
    return { contactsArrayMessage: { displayName: `${cards.length} contacts`, contacts: cards } };
  },
  poll: ({ question, options, multiple }) => {
    const poll = { name: question, options: options.map((optionName) => ({ optionName })) };
    // Version 3 is for a single choice. A count of 0 allows any number.
    return multiple
      ? { pollCreationMessage: { ...poll, selectableOptionsCount: 0 } }
      : { pollCreationMessageV3: { ...poll, selectableOptionsCount: 1 } };
  },
  menu: menuOf,
  reaction: ({ emoji, target }, { chat, runtime }) => ({
    reactionMessage: { key: keyIn(chat, target), text: emoji, senderTimestampMs: runtime.clock.now() },
  }),
  forward: async ({ source: of, preview }, { source }) => {
    const message = normalizeMessageContent(await source(of));
    if (!message) throw new OriginalGone();
    return forwarded(message, preview);
  },
  edit: ({ target: id, text }, { chat: remoteJid, runtime }) => ({
    protocolMessage: {
      key: { remoteJid, fromMe: true, id },
      type: proto.Message.ProtocolMessage.Type.MESSAGE_EDIT,
      editedMessage: { extendedTextMessage: { text } },
      timestampMs: runtime.clock.now(),
    },
  }),
  revoke: ({ target }, { chat }) => ({
    protocolMessage: {
      key: keyIn(chat, target),
      type: proto.Message.ProtocolMessage.Type.REVOKE,
    },
  }),
  // A text status is shown on a background colour.
  status: async ({ of }, tools) =>
    of.kind === "text"
      ? { extendedTextMessage: { text: of.text, backgroundArgb: STATUS_GROUND } }
      : await encoderOf(of)(of, tools),
};

/** Returns options as a native-flow message, which phones show as buttons or as a list to open. */
function menuOf({ style, text, footer, options }: Extract<OutgoingBody, { kind: "menu" }>): proto.IMessage {
  const button = (name: string, params: unknown) => ({ name, buttonParamsJson: JSON.stringify(params) });
  const rows = options.map(({ id, label: title, description }) => ({
    id,
    title,
    ...(description ? { description } : {}),
  }));
  const buttons = style === "list"
    ? [button("single_select", { title: LIST_TITLE, sections: [{ title: "", rows }] })]
    : options.map(({ id, label: display_text }) => button("quick_reply", { display_text, id }));
  return {
    interactiveMessage: {
      body: { text },
      ...(footer ? { footer: { text: footer } } : {}),
      nativeFlowMessage: { buttons, messageParamsJson: "{}", messageVersion: 1 },
    },
  };
}

/**
 * Encodes a message; encrypts and uploads its file, if any. Throws OriginalGone or UploadFailed. Also throws if the
 * file can't be read or the signal aborts.
 */
export async function encode({ body, manner = {} }: Pick<Outgoing, "body" | "manner">, tools: EncodeTools) {
  const messageContextInfo = { messageSecret: tools.runtime.random.bytes(SECRET_BYTES) };
  const content = await withContext(await encoderOf(body)(body, tools), manner, tools);
  return proto.Message.fromObject({ ...content, messageContextInfo });
}

/**
 * Encrypts and uploads a file. Returns its location, keys and properties. Throws UploadFailed. Also throws if the file
 * can't be read or the signal aborts.
 */
async function encodeFile(body: FileBody, { upload, runtime, inspect, signal }: EncodeTools) {
  const { kind, path, mimetype } = body;
  signal.throwIfAborted();
  const early = await inspect(body, { signal });
  // The network stores voice notes as audio.
  const media = kind === "voice" ? "audio" : kind;
  const encrypted = await encryptFile(path, media, runtime.random);
  const { mediaKey, fileSha256, fileEncSha256, fileLength } = encrypted;
  const place = await upload(encrypted, { kind: media, signal });
  const mediaKeyTimestamp = Math.floor(runtime.clock.now() / 1000);
  // The machine was busy: phones show a picture without its size as a square.
  const facts = early ?? await inspect(body, { signal }) ?? {};
  // Phones play Opus in Ogg as a voice note. Any other audio arrives as an audio file.
  const isOgg = kind === "audio" && essence(mimetype) === OGG;
  const voice = !isOgg ? {} : isOggOpus(await headOf(path)) ? { ptt: true, mimetype: VOICE } : { mimetype: OGG };
  return {
    ...place,
    mediaKey,
    fileSha256,
    fileEncSha256,
    fileLength,
    mediaKeyTimestamp,
    mimetype,
    ...facts,
    ...voice,
  };
}

async function headOf(path: string): Promise<Uint8Array> {
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read(new Uint8Array(HEAD_BYTES), 0, HEAD_BYTES, 0);
  return buffer.subarray(0, bytesRead);
}

function encoderOf({ kind }: OutgoingBody) {
  return ENCODERS[kind] as (body: OutgoingBody, tools: EncodeTools) => Promise<proto.IMessage>;
}

function keyIn(remoteJid: string, { networkId: id, participant, fromMe }: MessageKey): proto.IMessageKey {
  return { remoteJid, id, fromMe, ...(participant ? { participant } : {}) };
}

function captionOf({ caption }: { caption: string | null }): { caption?: string } {
  return caption ? { caption } : {};
}

/**
 * Formats a contact as a vCard 3.0 (RFC 2426), with the parameter that lets phones find the account behind the number.
 */
function vcardOf({ name, phone, organization, lines }: ContactCard): string {
  const known = [
    `N:${vcardText(name)};;;;`,
    ...(organization ? [`ORG:${vcardText(organization)}`] : []),
    `TEL;type=CELL;type=VOICE;waid=${phone}:+${phone}`,
  ];
  return ["BEGIN:VCARD", "VERSION:3.0", `FN:${vcardText(name)}`, ...(lines ?? known), "END:VCARD"].join("\n");
}
