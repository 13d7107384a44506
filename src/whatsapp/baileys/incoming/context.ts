/**
 * What a message refers to: the quoted message, the people mentioned, whether it was forwarded, where its chat came
 * from.
 */
import type { proto } from "@whiskeysockets/baileys";
import type { Incoming, Quoted } from "../../incoming.ts";

type Message = proto.IMessage;

/** The largest group has this many members. */
const MOST_MENTIONS = 1_024;

export interface Context extends Pick<Incoming, "mentions" | "isForwarded" | "ad"> {
  /** Without `fromMe`, which only a caller that knows the line can tell. */
  quoted: Omit<Quoted, "fromMe"> | null;
}

/** Reads the context of a message. `firstText` returns the preview text of the quoted message. */
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
export function present<T>(record: Record<string, T | null | undefined>): Record<string, T> {
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) => value == null || value === "" ? [] : [[name, value]]),
  );
}
