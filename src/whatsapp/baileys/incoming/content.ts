/**
 * What a received message says: its type, text, file, and details for which the envelope has no field; and what it
 * refers to: the quoted message, the people mentioned, whether it was forwarded, where its chat came from.
 *
 * `text` is as specified for texts, captions and reactions. For other types it is what a person would read first: the
 * body of a company's message, the name of the place or contact, the poll's question, the label of what was chosen.
 * `kinds/kinds.ts` has a row for each kind.
 */
import { isJidStatusBroadcast, proto } from "@whiskeysockets/baileys";
import type { Incoming, IncomingChange, Quoted } from "../../incoming.ts";
import type { Timer } from "../rows.ts";
import { LONGEST_ID } from "../stanza.ts";
import { writtenJid } from "../jids.ts";
import { type Field, type Message, type Notes, rowsOf } from "./kinds/kinds.ts";
import { type Details, first, isEmpty, lines, plain, present, type Said } from "./kinds/said.ts";

export type { MediaContent, MediaKind } from "./kinds/said.ts";

/** Everything that a message says, and what it refers to. */
interface FullContent extends Said, Context {
  viewOnce: boolean;
  change: IncomingChange | null;
}

const ROWS = rowsOf(firstText);
const FIELDS = new Set(Object.keys(ROWS));
const MAX_ENVELOPES = 8;

const ProtocolType = proto.Message.ProtocolMessage.Type;
const AssociationType = proto.MessageAssociation.AssociationType;

/** Reads a message. Null if it has no content for people (key distribution, synchronisation between own devices). */
export function contentOf(message: Message): FullContent | null {
  const { inner, notes } = unwrap(message);
  const change = inner.protocolMessage ? changeOf(inner.protocolMessage) : null;
  const content = change ? plain("unknown", change.kind === "edited" ? change.text : null) : read(inner);
  if (!content) return null;
  const { viewOnce = isViewOnce(inner), disappearing } = notes;
  const info = contextIn(inner);
  const details = present({
    disappearing: info?.expiration || disappearing,
    album: albumOf(message) ?? albumOf(inner),
    ...info && besideOf(info),
    ...content.details,
  });
  return {
    ...content,
    details: isEmpty(details) ? null : details,
    ...contextOf(info),
    viewOnce,
    change,
  };
}

/** Returns the text shown in a preview of a message; null if there is none. */
function firstText(message: Message): string | null {
  return read(unwrap(message).inner)?.text ?? null;
}

/** Returns what a message says of how long messages of its chat stay; null if nothing. */
export function timerIn(message: Message): Timer | null {
  const inner = unwrapped(message);
  const { type, ephemeralExpiration, ephemeralSettingTimestamp } = inner.protocolMessage ?? {};
  if (type === ProtocolType.EPHEMERAL_SETTING) {
    return { seconds: ephemeralExpiration ?? 0, setAt: Number(ephemeralSettingTimestamp ?? 0) };
  }
  const { expiration, ephemeralSettingTimestamp: setAt } = contextIn(inner) ?? {};
  return expiration == null ? null : { seconds: expiration, setAt: Number(setAt ?? 0) };
}

/** Returns the album that a picture belongs to: the same text for all of them. */
function albumOf({ messageContextInfo }: Message): string | null {
  const { associationType, parentMessageKey } = messageContextInfo?.messageAssociation ?? {};
  return associationType === AssociationType.MEDIA_ALBUM ? namedBy(parentMessageKey) : null;
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

interface Envelope {
  message?: Message | null;
}

/** Unwraps a message and collects what its envelopes say. With too many envelopes, `inner` is still an envelope. */
function unwrap(message: Message): { inner: Message; notes: Notes } {
  let inner = message;
  const notes: Notes = {};
  for (let depth = 0; depth < MAX_ENVELOPES; depth++) {
    const found = fieldsOf(inner).find((field) => "envelope" in ROWS[field]);
    const row = found && ROWS[found];
    const envelope = found && inner[found] as Envelope;
    if (!row || !("envelope" in row) || !envelope?.message) break;
    Object.assign(notes, row.envelope);
    inner = envelope.message;
  }
  return { inner, notes };
}

/** Returns the message inside of all envelopes. */
export function unwrapped(message: Message): Message {
  return unwrap(message).inner;
}

/** The fields that are set. */
function fieldsOf(message: Message): Field[] {
  return Object.entries(message).flatMap(([name, value]) =>
    value !== null && value !== undefined && FIELDS.has(name) ? [name as Field] : []
  );
}

/** Reads the first kind that has content for people; null if there is none. */
function read(message: Message): Said | null {
  for (const field of fieldsOf(message)) {
    const row = ROWS[field];
    // Wrapped more often than any app does.
    if ("envelope" in row && (message[field] as Envelope).message) return plain("unknown", null, { kind: field });
    if (!("read" in row)) continue;
    const said = (row.read as (body: unknown) => Said)(message[field]);
    return said.type === "unknown" ? { ...said, details: { kind: field, ...said.details } } : said;
  }
  return null;
}

/** Returns the poll in a message, whichever app version made it. */
export function pollIn(m: Message): proto.Message.IPollCreationMessage | null | undefined {
  return m.pollCreationMessage ?? m.pollCreationMessageV2 ?? m.pollCreationMessageV3 ?? m.pollCreationMessageV5;
}

/** The largest group has this many members. */
const MOST_MENTIONS = 1_024;

interface Context extends Pick<Incoming, "mentions" | "isForwarded" | "ad"> {
  /** Without `fromMe`, which only a caller that knows the line can tell. */
  quoted: Omit<Quoted, "fromMe"> | null;
}

function contextIn(message: Message): proto.IContextInfo | null | undefined {
  const bodies: (WithContext | null)[] = Object.values(message);
  return bodies.find((body) => body?.contextInfo)?.contextInfo;
}

/** What is shown above or below a message: where it was forwarded from, a preview, a button, the groups it names. */
function besideOf(info: proto.IContextInfo): Details {
  const { forwardedNewsletterMessageInfo: channel, quotedAd, actionLink, groupMentions } = info;
  const card = adOf(info) ? null : info.externalAdReply;
  return {
    forwardedFrom: present({
      id: writtenJid(channel?.newsletterJid),
      name: channel?.newsletterName || info.forwardedAiBotMessageInfo?.botName,
    }),
    memberLabel: info.memberLabel?.label,
    preview: present({
      title: lines([card?.title, quotedAd?.advertiserName]),
      text: lines([card?.body, quotedAd?.caption]),
    }),
    action: actionLink && present({ text: actionLink.buttonTitle, url: actionLink.url }),
    groups: first(groupMentions).map(({ groupJid, groupSubject }) =>
      present({ id: writtenJid(groupJid), name: groupSubject })
    ).toArray(),
  };
}

function contextOf(info: proto.IContextInfo | null | undefined): Context {
  const { stanzaId, participant, remoteJid, quotedMessage, mentionedJid, isForwarded } = info ?? {};
  const text = quotedMessage ? firstText(quotedMessage) : null;
  const status = isJidStatusBroadcast(remoteJid ?? "") ? { status: true as const } : {};
  return {
    quoted: stanzaId ? { messageId: stanzaId, participant: writtenJid(participant), text, ...status } : null,
    mentions: [...new Set(first(mentionedJid, MOST_MENTIONS).map(writtenJid).filter((jid) => jid !== null))],
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
    greeting: info.externalAdReply?.greetingMessageBody,
    conversionSource: info.conversionSource,
    entryPoint: info.entryPointConversionSource,
  });
  if (isEmpty(source)) return null;
  return present({ title, body, mediaUrl, ...source }) as Record<string, string>;
}
