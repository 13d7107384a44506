/** A message that is sent on: what it holds, marked as forwarded, without what it referred to. */
import { proto } from "@whiskeysockets/baileys";

interface Body {
  contextInfo?: proto.IContextInfo | null;
}

/** The one field of a message that holds its content, and what stands in it. */
export function bodyOf(content: proto.IMessage): { field: string; body: Body } {
  const [field, body]: [string, Body] = Object.entries(content).find(([, value]) => value != null)!;
  return { field, body };
}

/** The message is not kept any more. */
export class OriginalGone extends Error {
  override name = "OriginalGone";
}

/** Apps say "forwarded many times" from five on. */
export function forwarded(original: proto.IMessage): proto.IMessage {
  const { messageContextInfo: _, conversation, ...rest } = original;
  const content: proto.IMessage = conversation == null ? rest : { extendedTextMessage: { text: conversation } };
  const { field, body } = bodyOf(content);
  const forwardingScore = (body.contextInfo?.forwardingScore ?? 0) + 1;
  return { [field]: { ...body, contextInfo: { isForwarded: true, forwardingScore } } };
}
