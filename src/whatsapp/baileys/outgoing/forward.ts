/** A message that is sent on: what it holds, marked as forwarded, without what it referred to. */
import { proto } from "@whiskeysockets/baileys";

/** The message is not kept any more. */
export class OriginalGone extends Error {
  override name = "OriginalGone";
}

/** Apps say "forwarded many times" from five on. */
export function forwarded(original: proto.IMessage): proto.IMessage {
  const { messageContextInfo: _, conversation, ...rest } = original;
  const content: proto.IMessage = conversation == null ? rest : { extendedTextMessage: { text: conversation } };
  const [field, body] = Object.entries(content).find(([, value]) => value != null) as [
    keyof proto.IMessage,
    { contextInfo?: proto.IContextInfo | null },
  ];
  const forwardingScore = (body.contextInfo?.forwardingScore ?? 0) + 1;
  return { [field]: { ...body, contextInfo: { isForwarded: true, forwardingScore } } };
}
