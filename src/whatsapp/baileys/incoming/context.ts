/** What a message refers to: the message that it answers, who is mentioned, whence it was forwarded or its chat came. */
import type { proto } from "@whiskeysockets/baileys";
import type { Incoming, Quoted } from "../../incoming.ts";

type Message = proto.IMessage;

/** Groups have no more members. */
const MOST_MENTIONS = 1_024;

export interface Context extends Pick<Incoming, "mentions" | "isForwarded" | "ad"> {
  /** Whose message it is, is for those to say who know the line. */
  quoted: Omit<Quoted, "fromMe"> | null;
}

/** `firstText` reads what a person reads first of the quoted message. */
export function contextOf(message: Message, firstText: (quoted: Message) => string | null): Context {
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

/** The ad or link by which somebody came to write; a preview that names no source is none. */
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

/** Without the members that are null, undefined or empty texts. */
export function present<T>(record: Record<string, T | null | undefined>): Record<string, T> {
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) => value == null || value === "" ? [] : [[name, value]]),
  );
}
