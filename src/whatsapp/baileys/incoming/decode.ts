/** Converts a decrypted stanza to the port's `Incoming`: its sender, chat and content. */
import {
  areJidsSameUser,
  cleanMessage,
  decodeMessageNode,
  isJidBroadcast,
  isJidGroup,
  isLidUser,
  proto,
  type WAMessage,
} from "@whiskeysockets/baileys";
import type { Clock } from "../../../runtime.ts";
import type { Incoming, IncomingChange, IncomingMedia } from "../../incoming.ts";
import { contentOf, type MediaContent, type MediaKind, timerIn, unwrapped } from "./content.ts";
import { bounded, unlessTooMany } from "./bounded.ts";
import type { HistoryNotification } from "./history_sync.ts";
import type { JournalEntry, UndecryptedEntry } from "./journal.ts";
import type { PhoneOf } from "./numbers.ts";
import { messageIn } from "./plaintext.ts";
import { type Adder, type FindOriginal, readVote, unsealed } from "./message_secret.ts";
import { digitsOf, isOwn, numberIn, type OwnJids, plainJid, usernameIn } from "../jids.ts";
import type { Timer } from "../rows.ts";
import { LONGEST_ID } from "../stanza.ts";

/** The last second that a JavaScript date can represent. */
const LAST_SECOND = 8_640_000_000_000;

export interface DecodeContext {
  me: OwnJids;
  clock: Pick<Clock, "now">;
  /** Returns the phone-number JID behind a `@lid` that wrote in `chat`; null if the network does not reveal it. */
  phoneOf: PhoneOf;
  findOriginal: FindOriginal;
  /** Takes how long messages of a 1:1 chat stay, under all names of the chat. Throws StoreError. */
  timer(chats: readonly string[], timer: Timer): Promise<void>;
  /** Whether a message with this id did not decrypt, so that the owner's phone may resend it. Throws StoreError. */
  isLost(networkId: string): Promise<boolean>;
  /** Whether any of the addresses belongs to an admin; false if the network does not say. Never rejects. */
  isAdmin(group: string, addresses: readonly string[]): Promise<boolean>;
  media(message: WAMessage, kind: MediaKind, file: MediaContent): IncomingMedia;
  /** Takes a part of the history that the owner's phone sends after linking. Never rejects. */
  history(notification: HistoryNotification): Promise<void>;
}

/**
 * Returns the messages in a decrypted part: none if it has no content for people, usually one, and several if the
 * owner's phone resends messages that this device could not decrypt. A message that is too long, or has too many
 * members, is reported without its content. Throws if the stanza or the plaintext is malformed.
 */
export async function decode(
  part: Pick<JournalEntry, "attrs" | "plaintext" | "isTooLong">,
  context: DecodeContext,
): Promise<Incoming[]> {
  const message = part.isTooLong ? null : unlessTooMany(() => messageIn(part.plaintext));
  if (message === null) return part.attrs.category === "peer" ? [] : [await decodeUndecryptable(part, context)];
  const whole = messageOf(part.attrs, context.me);
  whole.message = message.deviceSentMessage?.message ?? message;
  const history = message.protocolMessage?.historySyncNotification;
  if (history && whole.key.fromMe) await context.history(history);
  const sent = whole.key.fromMe ? await resent(whole.message, context) : [];
  const decoded = await Promise.all([...sent, whole].map((message) => toIncoming(message, context)));
  return decoded.filter((message) => message !== null);
}

/**
 * The report of a message that could not be decrypted, even after its sender's device was asked again; or that the
 * network withholds.
 */
export async function decodeUndecryptable(
  { attrs, withheld }: Pick<UndecryptedEntry, "attrs" | "withheld">,
  context: DecodeContext,
): Promise<Incoming> {
  const message = messageOf(attrs, context.me);
  cleanMessage(message, context.me.id, context.me.lid ?? "");
  const envelope = await envelopeOf(message, context);
  return {
    ...envelope,
    ...NOTHING,
    viewOnce: withheld === "view_once",
    details: withheld ? { withheld } : null,
    undecryptable: withheld === undefined,
  };
}

/** A message without content. */
const NOTHING = {
  type: "unknown",
  text: null,
  media: null,
  quoted: null,
  mentions: [],
  isForwarded: false,
  viewOnce: false,
  ad: null,
  change: null,
  details: null,
} as const;

/** Reads a message in the library's format. Null if it has no content for people. */
async function toIncoming(message: WAMessage, context: DecodeContext): Promise<Incoming | null> {
  if (!message.message) return null;
  nameFromOurSide(message, context.me);
  await noteTimer(message, context);
  const adder = adderOf(message, context);
  const opened = await unsealed(message.message, adder, context.findOriginal);
  const content = opened && contentOf(opened);
  const change = content?.change
    ? await changeOf(content.change, message, context)
    : await voteOf(message, adder, context);
  if (!content && !change) return null;
  const { quoted, mentions, media, ...said } = content ?? NOTHING;
  const { me } = context;
  const named = (jid: string) => isOwn(jid, me) ? plainJid(me.id) : jid;
  return {
    ...await envelopeOf(message, context),
    ...said,
    media: media && context.media(message, media.kind, media.file),
    quoted: quoted && {
      ...quoted,
      participant: quoted.participant && named(quoted.participant),
      fromMe: isOwn(quoted.participant ?? "", me),
    },
    mentions: [...new Set(mentions.map(named))],
    details: said.details && withNamed(said.details, named),
    change,
    undecryptable: false,
  };
}

/** Where the kinds name the message that they are about. */
const KEYS = ["key", "targetMessageKey", "originalStatusId", "requestMessageKey"];

/** Names sender, chat and the messages that this one is about as the line sees them, not its sender. */
function nameFromOurSide({ key: sender, message }: WAMessage, { id, lid = "" }: OwnJids): void {
  cleanMessage({ key: sender }, id, lid);
  const bodies: (Record<string, proto.IMessageKey> | null)[] = Object.values(unwrapped(message!));
  for (const body of bodies) {
    // The library does so for reactions.
    for (const key of KEYS.map((name) => body?.[name]).filter((key) => key?.id)) {
      cleanMessage({ key: sender, message: { reactionMessage: { key } } }, id, lid);
    }
  }
}

async function noteTimer({ key, message }: WAMessage, context: DecodeContext): Promise<void> {
  const { remoteJid, remoteJidAlt } = key;
  const timer = timerIn(message!);
  if (timer === null || isJidGroup(remoteJid!) || isJidBroadcast(remoteJid!)) return;
  await context.timer([remoteJid!, ...(remoteJidAlt ? [remoteJidAlt] : [])], timer);
}

/** Where details name somebody. */
const NAMES = [["target", "participant"], ["order", "seller"], ["product", "seller"], ["payment", "from"]] as const;

/** Names the line by its number where details name somebody. */
function withNamed(details: Record<string, unknown>, named: (jid: string) => string): Record<string, unknown> {
  const shown = { ...details };
  for (const [member, name] of NAMES) {
    const one = shown[member] as Record<string, string> | undefined;
    if (one?.[name]) shown[member] = { ...one, [name]: named(one[name]) };
  }
  return shown;
}

function adderOf({ key }: Pick<WAMessage, "key">, { me }: DecodeContext): Adder {
  return {
    chat: key.remoteJid!,
    addresses: addressesOf({ key }, me),
    fromMe: key.fromMe ?? false,
    me: [me.id, me.lid ?? ""],
  };
}

/** Returns the edit or deletion. For someone else's deletion in a group, finds out whether an admin made it. */
async function changeOf(change: IncomingChange, { key }: WAMessage, context: DecodeContext): Promise<IncomingChange> {
  if (change.kind !== "deleted" || key.fromMe || !isJidGroup(key.remoteJid!)) return change;
  return { ...change, byAdmin: await context.isAdmin(key.remoteJid!, addressesOf({ key }, context.me)) };
}

async function voteOf(
  { message }: WAMessage,
  adder: Adder,
  { findOriginal }: DecodeContext,
): Promise<IncomingChange | null> {
  const { pollUpdateMessage } = unwrapped(message ?? {});
  const vote = pollUpdateMessage && await readVote(pollUpdateMessage, adder, findOriginal);
  return vote ? { kind: "vote", ...vote } : null;
}

/** The sender's addresses: number and LID, if both are known. */
function addressesOf({ key }: Pick<WAMessage, "key">, { id, lid }: OwnJids): string[] {
  const { fromMe, participant, participantAlt, remoteJid, remoteJidAlt } = key;
  const jids = fromMe ? [id, lid] : participant ? [participant, participantAlt] : [remoteJid, remoteJidAlt];
  return jids.filter((jid): jid is string => Boolean(jid));
}

function messageOf(attrs: Record<string, string>, me: OwnJids): WAMessage {
  const { fullMessage } = decodeMessageNode({ tag: "message", attrs }, me.id, me.lid ?? "");
  // Of the owner's messages to a broadcast list, the library recognises only those sent under the number.
  if (isJidBroadcast(attrs.from) && isOwn(attrs.participant ?? "", me)) fullMessage.key.fromMe = true;
  // The library reads that of a member of a group only.
  const { username } = usernameIn(attrs.participant_username ?? attrs.username);
  if (username) fullMessage.key.participantUsername = username;
  return fullMessage;
}

async function envelopeOf(
  message: WAMessage,
  context: DecodeContext,
): Promise<Omit<Incoming, keyof typeof NOTHING | "undecryptable">> {
  const { key } = message;
  const remote = key.remoteJid!;
  const participant = key.participant ? plainJid(key.participant) : null;
  const fromMe = key.fromMe ?? false;
  // For its recipients, a broadcast list is a 1:1 chat.
  const chat = isJidBroadcast(remote) && participant ? participant : plainJid(remote);
  const sender = fromMe ? context.me.id : participant ?? chat;
  const other = fromMe ? undefined : key.participantAlt ?? key.remoteJidAlt;
  return {
    networkId: key.id!,
    chat,
    participant: isJidGroup(chat) ? participant : null,
    fromMe,
    number: await numberOf(sender, { other, chat }, context),
    pushName: message.pushName ?? null,
    ...(fromMe ? {} : usernameIn(key.participantUsername ?? undefined)),
    timestamp: timeOf(message) ?? Math.floor(context.clock.now() / 1000),
  };
}

/** Unix seconds; null if the timestamp is not a valid time. */
function timeOf({ messageTimestamp }: WAMessage): number | null {
  const seconds = Number(messageTimestamp ?? 0);
  return seconds > 0 && seconds <= LAST_SECOND ? Math.floor(seconds) : null;
}

async function numberOf(
  sender: string,
  { other, chat }: { other: string | undefined; chat: string },
  context: DecodeContext,
): Promise<string | null> {
  const { me } = context;
  if (me.lid !== undefined && areJidsSameUser(sender, me.lid)) return digitsOf(me.id);
  const known = numberIn(sender, other);
  if (known !== null || !isLidUser(sender)) return known;
  return numberIn(await context.phoneOf(sender, chat));
}

/** The phone is asked for one message at a time, and answers so. */
const MOST_RESENT = 32;

/**
 * Messages that the owner's phone resends because this device could not decrypt them. Others are ignored: another
 * linked device of the account could write any number of messages into any chat.
 */
async function resent(message: proto.IMessage, context: DecodeContext): Promise<WAMessage[]> {
  const answer = message.protocolMessage?.peerDataOperationRequestResponseMessage;
  const found: WAMessage[] = [];
  for (const result of (answer?.peerDataOperationResult ?? []).slice(0, MOST_RESENT)) {
    const bytes = result.placeholderMessageResendResponse?.webMessageInfoBytes;
    const message = bytes && proto.WebMessageInfo.decode(bounded(bytes));
    const id = message?.key?.id;
    if (!id || id.length > LONGEST_ID || !message.key?.remoteJid || !await context.isLost(id)) continue;
    // Phones name a group message's author in the key, or only beside it.
    found.push({ ...message, key: { ...message.key, participant: message.key.participant || message.participant } });
  }
  return found;
}
