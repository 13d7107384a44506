/** Builds and reads stanzas, and withholds stanzas from the library. */
import { Buffer } from "node:buffer";
import type { EventEmitter } from "node:events";
import { type BinaryNode, S_WHATSAPP_NET } from "@whiskeysockets/baileys";

/** Builds a query, to the network itself unless `to` names a group. */
export function iq(
  { type, xmlns, to = S_WHATSAPP_NET }: { type: "get" | "set"; xmlns: string; to?: string },
  question?: BinaryNode,
): BinaryNode {
  return { tag: "iq", attrs: { to, type, xmlns }, ...(question ? { content: [question] } : {}) };
}

/** Returns the content of a node as bytes, empty if it has none. The codec gives short texts as strings. */
export function bytesIn(node: BinaryNode | undefined): Buffer {
  const content = node?.content;
  if (content instanceof Uint8Array) return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  return Buffer.from(typeof content === "string" ? content : "");
}

type Listener = (stanza: BinaryNode) => void;

/** Withholds stanzas that match `isOurs` from the present listeners of `event`, above all from the library's. */
export function withhold(
  ws: Pick<EventEmitter, "listeners" | "removeAllListeners" | "on">,
  event: string,
  isOurs: (stanza: BinaryNode) => boolean,
): void {
  const listeners: Listener[] = ws.listeners(event);
  ws.removeAllListeners(event);
  for (const listener of listeners) ws.on(event, (stanza: BinaryNode) => void (isOurs(stanza) || listener(stanza)));
}
