/**
 * Messages stored encoded and sealed, also across restarts. Received ones can be quoted, reacted to and forwarded as
 * soon as their event is visible: each is written in the commit that removes it from the journal, which is also the
 * commit of its event. From sent ones, retry receipts are answered.
 */
import { Buffer } from "node:buffer";
import { BufferJSON, jidNormalizedUser, proto, type SignalKeyStore, type WAMessageKey } from "@whiskeysockets/baileys";
import type { Incoming, IncomingChange, IncomingType, Recalled } from "../incoming.ts";
import type { ForwardableKind } from "../outgoing.ts";
import { deleteKeys } from "../../store/delete_range.ts";
import type { Change, Key } from "../../store/kv.ts";
import type { Seal } from "../../store/seal.ts";
import { expireAfter, type LineRows, networkKeys, plainBytes, POLL_KEPT_DAYS } from "./rows.ts";
import { pollIn, unwrapped } from "./incoming/content.ts";
import { keptNamesOf } from "./incoming/numbers.ts";
import { messageIn } from "./incoming/plaintext.ts";

/** A received message: as long as its event can be read. */
const RECEIVED_DAYS = 30;
/**
 * A sent message: a phone that was offline asks when it returns. The network keeps messages for it no longer than this.
 */
const SENT_DAYS = 14;
/** An original that is longer, which only a text or what a program made is, is kept as a text of this many characters. */
const LONGEST_ORIGINAL = 64 * 1024;
/** More than any file system allows. */
const LONGEST_NAME = 1_024;
const SECRET_BYTES = 32;

interface Original extends Pick<Incoming, "chat" | "participant" | "fromMe" | "number" | "text" | "type"> {
  filename: string | null;
}

/** The row before sealing. */
export interface SealedOriginal extends Original {
  /** The encoded message as its sender made it. */
  message: Uint8Array;
  /** The part of a stanza that brought it (`journal.ts`); absent where that has a row of its own. */
  part?: string;
}

/** Maps each type that can be forwarded to the kind that is sent. */
const FORWARDABLE: Partial<Record<IncomingType, ForwardableKind>> = {
  conversation: "text",
  extendedTextMessage: "text",
  imageMessage: "image",
  videoMessage: "video",
  audioMessage: "audio",
  documentMessage: "document",
  locationMessage: "location",
  contactMessage: "contact",
  contactsArrayMessage: "contact",
  stickerMessage: "sticker",
};

/** Adds the row of a message that is handed over, of those that something may refer to. */
export function keepOriginal(
  change: Change,
  incoming: Incoming,
  { seal, lineId, plaintext, now, part }: {
    seal: Seal;
    lineId: string;
    plaintext: Uint8Array;
    now: number;
    part?: string | undefined;
  },
): void {
  const { networkId: id, chat, participant, fromMe, number, text, type, media, viewOnce } = incoming;
  const { messageContextInfo, deviceSentMessage, ...said } = messageIn(plaintext);
  // A copy of what the owner sent elsewhere may have its secret beside it.
  const whole = { messageContextInfo, ...(deviceSentMessage?.message ?? said) };
  // By its length before it is encoded: a million tiny members take half a second.
  const isWhole = plaintext.length <= LONGEST_ORIGINAL;
  const kept = text?.slice(0, LONGEST_ORIGINAL) ?? null;
  const { messageSecret } = messageContextInfo ?? {};
  const cut = () => ({
    conversation: kept ?? "",
    ...(messageSecret?.length === SECRET_BYTES ? { messageContextInfo: { messageSecret } } : {}),
  });
  const original: SealedOriginal = {
    chat,
    participant,
    fromMe,
    number,
    text: kept,
    // View-once messages can't be forwarded, nor those of which only the text is kept.
    type: viewOnce || !(isWhole || FORWARDABLE[type] === "text") ? "unknown" : type,
    filename: media?.filename?.slice(0, LONGEST_NAME) ?? null,
    message: proto.Message.encode(isWhole ? whole : cut()).finish(),
    ...(part === undefined ? {} : { part }),
  };
  const row = networkKeys.waReceived(lineId, id);
  const days = type === "pollCreationMessage" ? POLL_KEPT_DAYS : RECEIVED_DAYS;
  expireAfter(change, row, { days, now, id: inTurn(id, now) }).set(row, sealed(seal, original));
}

/** Applies a received edit or deletion to the stored original. `edited` is the original of an edited message. */
export function changeOriginal(
  change: Change,
  happened: IncomingChange,
  { seal, lineId, edited }: { seal: Seal; lineId: string; edited: SealedOriginal | null },
): void {
  const row = networkKeys.waReceived(lineId, happened.target);
  if (happened.kind === "deleted") change.delete(row);
  if (happened.kind !== "edited" || !edited || happened.text === null) return;
  const text = happened.text.slice(0, LONGEST_ORIGINAL);
  change.set(row, sealed(seal, { ...edited, text, message: withText(edited.message, text) }));
}

/** Returns the encoded message with another text or caption, so that an answer quotes what it says now. */
function withText(encoded: Uint8Array, text: string): Uint8Array {
  const { messageContextInfo, ...message } = proto.Message.decode(encoded);
  const inner = unwrapped(message);
  const captioned = inner.imageMessage ?? inner.videoMessage ?? inner.documentMessage;
  if (captioned) captioned.caption = text;
  else if (inner.extendedTextMessage) inner.extendedTextMessage.text = text;
  else if (typeof inner.conversation === "string") inner.conversation = text;
  return proto.Message.encode({ ...message, messageContextInfo }).finish();
}

function sealed(seal: Seal, original: SealedOriginal): Uint8Array {
  const plain = { ...original, message: plainBytes(original.message) };
  return seal.seal(Buffer.from(JSON.stringify(plain, BufferJSON.replacer)));
}

/** Returns the id of an index row: those of one moment lie together, where ids alone would each touch another page. */
function inTurn(id: string, now: number): string {
  return `${now} ${id}`;
}

/** As `Network.recall`; also throws SealError. */
export async function recall(options: LineRows, networkId: string): Promise<Recalled | null> {
  const original = await findReceived(options, networkId);
  if (!original) return null;
  const { chat, participant, fromMe, number, type, text, filename } = original;
  const kind = FORWARDABLE[type] ?? null;
  const isCaption = kind === "image" || kind === "video" || kind === "document";
  const preview = isCaption ? { text: null, caption: text, filename } : { text, caption: null, filename };
  return { chat, participant, fromMe, number, kind, ...preview };
}

/** Finds a received message; null if it was never received, or too long ago. Throws StoreError, SealError. */
export async function findReceived(
  options: LineRows,
  networkId: string,
): Promise<Original & { message: proto.IMessage } | null> {
  const row = await findSealed(options, networkId);
  if (!row) return null;
  // The group keys of its sender accompany a message that was sent again.
  const whole: proto.IMessage = proto.Message.decode(row.message);
  const { senderKeyDistributionMessage: _, fastRatchetKeySenderKeyDistributionMessage: __, ...message } = whole;
  return { ...row, message };
}

/** Returns the stored row of a received message. Null and errors as in `findReceived`. */
export async function findSealed({ kv, seal, lineId }: LineRows, networkId: string): Promise<SealedOriginal | null> {
  const { value } = await kv.get(networkKeys.waReceived(lineId, networkId));
  return value && JSON.parse(Buffer.from(seal.open(value)).toString(), BufferJSON.reviver);
}

/** Removes the originals of received messages. Throws StoreError, SealError. */
export async function eraseReceived(
  line: LineRows,
  messages: readonly { chat: string; networkId: string }[],
): Promise<void> {
  const keys: Key[] = [];
  for (const { chat, networkId } of messages) {
    // Senders choose their ids: it may be that of a message in another chat.
    const isIts = (await findSealed(line, networkId))?.chat === chat;
    if (isIts) keys.push(networkKeys.waReceived(line.lineId, networkId));
  }
  await deleteKeys(line.kv, keys);
}

interface Sent {
  /** JID of the chat; null if unknown. */
  chat: string | null;
  message: proto.IMessage;
}

/** Adds the row of a message that is sent to the JID `chat`. */
export function keepSent(
  change: Change,
  { networkId: id, chat, message }: { networkId: string; chat: string; message: proto.IMessage },
  { seal, lineId, now }: { seal: Seal; lineId: string; now: number },
): void {
  const row = networkKeys.waSent(lineId, id);
  // As the network does for the account's other devices.
  const envelope = { deviceSentMessage: { destinationJid: jidNormalizedUser(chat), message } };
  const days = pollIn(message) ? POLL_KEPT_DAYS : SENT_DAYS;
  expireAfter(change, row, { days, now, id: inTurn(id, now) })
    .set(row, seal.seal(proto.Message.encode(envelope).finish()));
}

/** Finds a sent message; null if it was never sent, or too long ago. Throws StoreError, SealError. */
export async function findSent({ kv, seal, lineId }: LineRows, networkId: string): Promise<Sent | null> {
  const { value } = await kv.get(networkKeys.waSent(lineId, networkId));
  if (!value) return null;
  const kept = proto.Message.decode(seal.open(value));
  const { destinationJid: chat, message } = kept.deviceSentMessage ?? {};
  // Older gateways stored the message without an envelope.
  return { chat: chat ?? null, message: message ?? kept };
}

/** Finds a message that the line sent or received. Null and errors as in `findReceived`. */
export async function findStored(line: LineRows, networkId: string): Promise<proto.IMessage | null> {
  return ((await findSent(line, networkId)) ?? (await findReceived(line, networkId)))?.message ?? null;
}

/**
 * Finds the message that the line sent under this id, but only if it went to this chat. Everyone who received a message
 * knows its id, and could otherwise have it sent to any group that the line is in.
 */
export async function sentIn(
  { id, remoteJid }: Pick<WAMessageKey, "id" | "remoteJid">,
  { line, keys }: { line: LineRows; keys: SignalKeyStore },
): Promise<proto.IMessage | undefined> {
  if (!id || !remoteJid) return undefined;
  const found = await findSent(line, id);
  return found?.chat && (await keptNamesOf(keys, remoteJid)).includes(found.chat) ? found.message : undefined;
}
