/** What the adapter writes and reads of stanzas by itself. */
import { Buffer } from "node:buffer";
import { type BinaryNode, S_WHATSAPP_NET } from "@whiskeysockets/baileys";

/** A question, to the network itself unless `to` names a group. */
export function iq(
  { type, xmlns, to = S_WHATSAPP_NET }: { type: "get" | "set"; xmlns: string; to?: string },
  question?: BinaryNode,
): BinaryNode {
  return { tag: "iq", attrs: { to, type, xmlns }, ...(question ? { content: [question] } : {}) };
}

/** What a node holds, empty where it has none; the codec gives short texts as strings. */
export function bytesIn(node: BinaryNode | undefined): Buffer {
  const content = node?.content;
  if (content instanceof Uint8Array) return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  return Buffer.from(typeof content === "string" ? content : "");
}
