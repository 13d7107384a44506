/**
 * Messages that came in, sealed, so that they can be quoted, reacted to and forwarded as soon as their event is out, and
 * after a restart too. Each is written in the commit that crosses it off the journal, which is that of its event.
 */
import { Buffer } from "node:buffer";
import { BufferJSON, proto, unpadRandomMax16 } from "@whiskeysockets/baileys";
import type { Incoming, IncomingChange, IncomingType, Recalled } from "../../incoming.ts";
import type { ForwardableKind } from "../../outgoing.ts";
import type { Change } from "../../../store/kv.ts";
import type { Seal } from "../../../store/seal.ts";
import { expireAfter, POLL_KEPT_DAYS } from "../expiry.ts";
import { type LineRows, networkKeys } from "../rows.ts";

/** As long as its event can be read. */
const KEPT_DAYS = 30;

interface Original extends Pick<Incoming, "chat" | "participant" | "fromMe" | "number" | "text" | "type"> {
  filename: string | null;
}

/** The row, sealed. */
export interface SealedOriginal extends Original {
  /** Encoded, as its sender made it. */
  message: Uint8Array;
}

/** As what a message that came in can be sent on. */
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
/** What nothing can refer to: edits, deletions, votes; and reactions. */
const UNREFERRED: readonly IncomingType[] = ["unknown", "reactionMessage"];

/** Adds the row of a message that was handed over. */
export function keepOriginal(
  change: Change,
  incoming: Incoming,
  { seal, lineId, plaintext, now }: { seal: Seal; lineId: string; plaintext: Uint8Array; now: number },
): void {
  const { networkId: id, chat, participant, fromMe, number, text, type, media, details } = incoming;
  if (UNREFERRED.includes(type)) return;
  const whole = proto.Message.decode(unpadRandomMax16(plaintext));
  const message = proto.Message.encode(whole.deviceSentMessage?.message ?? whole).finish();
  const original: SealedOriginal = {
    chat,
    participant,
    fromMe,
    number,
    text,
    // What was to be seen once is not sent on.
    type: details?.viewOnce ? "unknown" : type,
    filename: media?.filename ?? null,
    message,
  };
  const row = networkKeys.waReceived(lineId, id);
  const days = type === "pollCreationMessage" ? POLL_KEPT_DAYS : KEPT_DAYS;
  expireAfter(change, { row, lineId, kind: "received", id, days, now })
    .set(row, sealed(seal, original));
}

/** Adds what an edit or a deletion that came in makes of the message that it is about, `edited` as it was kept. */
export function changeOriginal(
  change: Change,
  happened: IncomingChange,
  { seal, lineId, edited }: { seal: Seal; lineId: string; edited: SealedOriginal | null },
): void {
  const row = networkKeys.waReceived(lineId, happened.target);
  if (happened.kind === "deleted") change.delete(row);
  if (happened.kind !== "edited" || !edited || happened.text === null) return;
  change.set(row, sealed(seal, { ...edited, text: happened.text }));
}

function sealed(seal: Seal, original: SealedOriginal): Uint8Array {
  return seal.seal(Buffer.from(JSON.stringify(original, BufferJSON.replacer)));
}

/** As `Network.recall`; throws SealError too. */
export async function recall(options: LineRows, networkId: string): Promise<Recalled | null> {
  const original = await findReceived(options, networkId);
  if (!original) return null;
  const { chat, participant, fromMe, number, type, text, filename } = original;
  const kind = FORWARDABLE[type] ?? null;
  const isCaption = kind === "image" || kind === "video" || kind === "document";
  const preview = isCaption ? { text: null, caption: text, filename } : { text, caption: null, filename };
  return { chat, participant, fromMe, number, kind, ...preview };
}

/** Null for a message that was never received, or too long ago. Throws StoreError, SealError. */
export async function findReceived(
  options: LineRows,
  networkId: string,
): Promise<Original & { message: proto.IMessage } | null> {
  const row = await findSealed(options, networkId);
  return row && { ...row, message: ofPeople(proto.Message.decode(row.message)) };
}

/** The same, as it was kept. */
export async function findSealed({ kv, seal, lineId }: LineRows, networkId: string): Promise<SealedOriginal | null> {
  const { value } = await kv.get(networkKeys.waReceived(lineId, networkId));
  return value && JSON.parse(Buffer.from(seal.open(value)).toString(), BufferJSON.reviver);
}

/** The message without the keys of its sender for a group, which come with one that was asked for again. */
function ofPeople(message: proto.IMessage): proto.IMessage {
  const { senderKeyDistributionMessage: _, fastRatchetKeySenderKeyDistributionMessage: __, ...said } = message;
  return said;
}
