/**
 * Received messages, sealed, so that they can be quoted, reacted to and forwarded as soon as their event is visible,
 * and after a restart. Each is written in the commit that removes it from the journal, which is also the commit of its
 * event.
 */
import { Buffer } from "node:buffer";
import { BufferJSON, proto, unpadRandomMax16 } from "@whiskeysockets/baileys";
import type { Incoming, IncomingChange, IncomingType, Recalled } from "../../incoming.ts";
import type { ForwardableKind } from "../../outgoing.ts";
import type { Change } from "../../../store/kv.ts";
import type { Seal } from "../../../store/seal.ts";
import { expireAfter, POLL_KEPT_DAYS } from "../expiry.ts";
import { type LineRows, networkKeys } from "../rows.ts";

/** As long as the message's event can be read. */
const KEPT_DAYS = 30;

interface Original extends Pick<Incoming, "chat" | "participant" | "fromMe" | "number" | "text" | "type"> {
  filename: string | null;
}

/** The row before sealing. */
export interface SealedOriginal extends Original {
  /** The encoded message as its sender made it. */
  message: Uint8Array;
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
/** Types that no other message can refer to: edits, deletions, votes, reactions. */
const UNREFERRED: readonly IncomingType[] = ["unknown", "reactionMessage"];

/** Adds the row of a message that is handed over. */
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
    // View-once messages can't be forwarded.
    type: details?.viewOnce ? "unknown" : type,
    filename: media?.filename ?? null,
    message,
  };
  const row = networkKeys.waReceived(lineId, id);
  const days = type === "pollCreationMessage" ? POLL_KEPT_DAYS : KEPT_DAYS;
  expireAfter(change, { row, lineId, kind: "received", id, days, now })
    .set(row, sealed(seal, original));
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
  change.set(row, sealed(seal, { ...edited, text: happened.text }));
}

function sealed(seal: Seal, original: SealedOriginal): Uint8Array {
  return seal.seal(Buffer.from(JSON.stringify(original, BufferJSON.replacer)));
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
  return row && { ...row, message: withoutGroupKeys(proto.Message.decode(row.message)) };
}

/** Returns the stored row of a received message. Null and errors as in `findReceived`. */
export async function findSealed({ kv, seal, lineId }: LineRows, networkId: string): Promise<SealedOriginal | null> {
  const { value } = await kv.get(networkKeys.waReceived(lineId, networkId));
  return value && JSON.parse(Buffer.from(seal.open(value)).toString(), BufferJSON.reviver);
}

/** Returns the message without its sender's group keys, which accompany a message that was sent again. */
function withoutGroupKeys(message: proto.IMessage): proto.IMessage {
  const { senderKeyDistributionMessage: _, fastRatchetKeySenderKeyDistributionMessage: __, ...said } = message;
  return said;
}
