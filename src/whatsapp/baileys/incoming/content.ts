/**
 * What a received message says: its type, text, file, and details for which the envelope has no field; and what it
 * refers to: the quoted message, the people mentioned, whether it was forwarded, where its chat came from.
 *
 * `text` is as specified for texts, captions and reactions. For other types it is what a person would read first: the
 * name of the place or contact, the poll's question, the label of the chosen button or list row.
 */
import { proto } from "@whiskeysockets/baileys";
import type { Incoming, IncomingChange, IncomingType, Quoted } from "../../incoming.ts";
import { LONGEST_ID } from "../stanza.ts";

type Message = proto.IMessage;

/** The fields of a media message that a download needs. */
export type MediaContent = Pick<
  proto.Message.IDocumentMessage,
  "url" | "directPath" | "mediaKey" | "fileSha256" | "fileEncSha256" | "fileLength" | "mimetype" | "fileName"
>;

/** Kinds of media as named in the network's key derivation. */
export type MediaKind = "image" | "video" | "audio" | "document" | "sticker";

interface Content {
  type: IncomingType;
  text: string | null;
  media: { kind: MediaKind; file: MediaContent } | null;
  details: Record<string, unknown> | null;
}

/** Everything that a message says, and what it refers to. */
interface FullContent extends Content, Context {
  viewOnce: boolean;
  change: IncomingChange | null;
}

interface Notes {
  disappearing?: true;
  viewOnce?: true;
}

/** Envelopes around a message: the field name, and what it says about the message inside. */
const ENVELOPES: Readonly<Record<string, Notes>> = {
  deviceSentMessage: {},
  ephemeralMessage: { disappearing: true },
  viewOnceMessage: { viewOnce: true },
  viewOnceMessageV2: { viewOnce: true },
  viewOnceMessageV2Extension: { viewOnce: true },
  documentWithCaptionMessage: {},
  editedMessage: {},
  associatedChildMessage: {},
  groupMentionedMessage: {},
  botInvokeMessage: {},
  lottieStickerMessage: {},
  pollCreationMessageV4: {},
  groupStatusMessage: {},
  groupStatusMessageV2: {},
  questionMessage: {},
};
const MAX_ENVELOPES = 8;
/** Fields that may accompany the content but are not content themselves. */
const NO_CONTENT = new Set([
  "senderKeyDistributionMessage",
  "fastRatchetKeySenderKeyDistributionMessage",
  "messageContextInfo",
]);

/** For a message without content of its own: an edit, a deletion, a vote. */
const NOTHING: Content = { type: "unknown", text: null, media: null, details: null };

const ProtocolType = proto.Message.ProtocolMessage.Type;

/** Reads a message. Null if it has no content for people (key distribution, synchronisation between own devices). */
export function contentOf(message: Message): FullContent | null {
  const { inner, notes } = unwrap(message);
  const change = inner.protocolMessage ? changeOf(inner.protocolMessage) : null;
  const content = change ? { ...NOTHING, text: change.kind === "edited" ? change.text : null } : read(inner);
  if (!content) return null;
  const { viewOnce = isViewOnce(inner), ...beside } = notes;
  const details = { ...beside, ...content.details };
  const context = contextOf(inner, firstText);
  return { ...content, details: Object.keys(details).length ? details : null, ...context, viewOnce, change };
}

/** Returns the text shown in a preview of a message; null if there is none. */
function firstText(message: Message): string | null {
  return read(unwrap(message).inner)?.text ?? null;
}

/**
 * Returns the edit or deletion, which names the message that it changes. Other protocol messages are not for people.
 */
function changeOf({ type, key, editedMessage }: proto.Message.IProtocolMessage): IncomingChange | null {
  const target = namedBy(key);
  if (!target) return null;
  if (type === ProtocolType.REVOKE) return { kind: "deleted", target, byAdmin: false };
  if (type !== ProtocolType.MESSAGE_EDIT || !editedMessage) return null;
  return { kind: "edited", target, text: firstText(editedMessage) };
}

/** Returns the id of the message that a key names. Null if there is none, or one that no message can have. */
export function namedBy(key: proto.IMessageKey | null | undefined): string | null {
  return key?.id && key.id.length <= LONGEST_ID ? key.id : null;
}

/** Newer apps mark the file itself instead of using an envelope. */
function isViewOnce(m: Message): boolean {
  return Boolean((m.imageMessage ?? m.videoMessage ?? m.audioMessage)?.viewOnce);
}

/** Unwraps a message and collects what its envelopes say. With too many envelopes, `inner` is still an envelope. */
function unwrap(message: Message): { inner: Message; notes: Notes } {
  let inner = message;
  const notes: Notes = {};
  for (let depth = 0; depth < MAX_ENVELOPES; depth++) {
    const [field = "", envelope]: [string?, { message?: Message | null }?] =
      Object.entries(inner).find(([name, value]) => value != null && name in ENVELOPES) ?? [];
    if (!envelope?.message) break;
    Object.assign(notes, ENVELOPES[field]);
    inner = envelope.message;
  }
  return { inner, notes };
}

function plain(type: IncomingType, text: string | null | undefined, details: Content["details"] = null): Content {
  return { type, text: text ?? null, media: null, details: details && present(details) };
}

function file(type: IncomingType, kind: MediaKind, from: MediaContent & { caption?: string | null }): Content {
  return { ...plain(type, from.caption || null), media: { kind, file: from } };
}

function read(m: Message): Content | null {
  if (m.protocolMessage) return null;
  if (m.conversation != null) return plain("conversation", m.conversation);
  if (m.extendedTextMessage) {
    const { text, matchedText, title, description } = m.extendedTextMessage;
    return plain("extendedTextMessage", text, { link: matchedText, linkTitle: title, linkDescription: description });
  }
  if (m.imageMessage) return file("imageMessage", "image", m.imageMessage);
  if (m.videoMessage) return file("videoMessage", "video", m.videoMessage);
  if (m.ptvMessage) return file("videoMessage", "video", m.ptvMessage);
  if (m.audioMessage) {
    const { ptt, seconds } = m.audioMessage;
    return { ...file("audioMessage", "audio", m.audioMessage), details: present({ voice: ptt || null, seconds }) };
  }
  if (m.documentMessage) {
    const { title, pageCount } = m.documentMessage;
    return { ...file("documentMessage", "document", m.documentMessage), details: present({ title, pageCount }) };
  }
  if (m.stickerMessage) return file("stickerMessage", "sticker", m.stickerMessage);
  if (m.reactionMessage) {
    const { key, text } = m.reactionMessage;
    // A removed reaction arrives as an empty one.
    return plain("reactionMessage", text || null, { target: targetOf(key), removed: text ? null : true });
  }
  if (m.locationMessage) {
    const { degreesLatitude, degreesLongitude, name, address, url, comment } = m.locationMessage;
    const place = { latitude: degreesLatitude, longitude: degreesLongitude, name, address, url };
    return plain("locationMessage", comment || name || address || null, place);
  }
  if (m.liveLocationMessage) {
    const { degreesLatitude, degreesLongitude, caption, accuracyInMeters } = m.liveLocationMessage;
    const place = { latitude: degreesLatitude, longitude: degreesLongitude, accuracyMeters: accuracyInMeters };
    return plain("liveLocationMessage", caption || null, place);
  }
  if (m.contactMessage) {
    const { displayName, vcard } = m.contactMessage;
    return plain("contactMessage", displayName, { contacts: [{ name: displayName, vcard }] });
  }
  if (m.contactsArrayMessage) {
    const { displayName, contacts } = m.contactsArrayMessage;
    const list = (contacts ?? []).map(({ displayName, vcard }) => ({ name: displayName, vcard }));
    return plain("contactsArrayMessage", displayName, { contacts: list });
  }
  const poll = pollIn(m);
  if (poll) {
    const options = (poll.options ?? []).map(({ optionName }) => optionName);
    return plain("pollCreationMessage", poll.name, { options, selectable: poll.selectableOptionsCount || null });
  }
  if (m.buttonsResponseMessage) {
    const { selectedDisplayText, selectedButtonId } = m.buttonsResponseMessage;
    return plain("buttonsResponseMessage", selectedDisplayText, { selectedId: selectedButtonId });
  }
  if (m.listResponseMessage) {
    const { title, description, singleSelectReply } = m.listResponseMessage;
    return plain("listResponseMessage", title, { description, selectedId: singleSelectReply?.selectedRowId });
  }
  return ofUnknown(m);
}

/** Returns the poll in a message, whichever app version made it. */
export function pollIn(m: Message): proto.Message.IPollCreationMessage | null | undefined {
  return m.pollCreationMessage ?? m.pollCreationMessageV2 ?? m.pollCreationMessageV3 ?? m.pollCreationMessageV5;
}

/** Reads any other type: its name goes into the details, with a text if one is readily available. */
function ofUnknown(m: Message): Content | null {
  const [kind] = Object.entries(m).find(([name, value]) => value != null && !NO_CONTENT.has(name)) ?? [];
  if (!kind) return null;
  const { templateButtonReplyMessage: button, interactiveResponseMessage: response, groupInviteMessage: invite } = m;
  const text = button?.selectedDisplayText ?? response?.body?.text ?? invite?.caption;
  return plain("unknown", text, {
    kind,
    selectedId: button?.selectedId,
    target: targetOf(
      m.pollUpdateMessage?.pollCreationMessageKey ?? m.pinInChatMessage?.key ?? m.keepInChatMessage?.key,
    ),
  });
}

function targetOf(key: proto.IMessageKey | null | undefined): Record<string, unknown> | null {
  if (!key?.id) return null;
  return present({ messageId: key.id, fromMe: key.fromMe ?? false, participant: key.participant });
}

/** The largest group has this many members. */
const MOST_MENTIONS = 1_024;

interface Context extends Pick<Incoming, "mentions" | "isForwarded" | "ad"> {
  /** Without `fromMe`, which only a caller that knows the line can tell. */
  quoted: Omit<Quoted, "fromMe"> | null;
}

/** Reads the context of a message. `firstText` returns the preview text of the quoted message. */
function contextOf(message: Message, firstText: (quoted: Message) => string | null): Context {
  const bodies: (WithContext | null)[] = Object.values(message);
  const info = bodies.find((body) => body?.contextInfo)?.contextInfo;
  const { stanzaId, participant, quotedMessage, mentionedJid, isForwarded } = info ?? {};
  const text = quotedMessage ? firstText(quotedMessage) : null;
  return {
    quoted: stanzaId ? { messageId: stanzaId, participant: participant || null, text } : null,
    mentions: mentionedJid?.slice(0, MOST_MENTIONS) ?? [],
    isForwarded: isForwarded ?? false,
    ad: info ? adOf(info) : null,
  };
}

interface WithContext {
  contextInfo?: proto.IContextInfo | null;
}

/** The ad or link through which the chat was started. A preview that names no source does not count. */
function adOf(info: proto.IContextInfo): Incoming["ad"] {
  const { title, body, sourceType, sourceId, sourceUrl, sourceApp, mediaUrl, ctwaClid } = info.externalAdReply ?? {};
  const source = present({
    sourceType,
    sourceId,
    sourceUrl,
    sourceApp,
    clickId: ctwaClid,
    conversionSource: info.conversionSource,
    entryPoint: info.entryPointConversionSource,
  });
  if (Object.keys(source).length === 0) return null;
  return present({ title, body, mediaUrl, ...source });
}

/** Omits members that are null, undefined or empty strings. */
function present<T>(record: Record<string, T | null | undefined>): Record<string, T> {
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) => value == null || value === "" ? [] : [[name, value]]),
  );
}
