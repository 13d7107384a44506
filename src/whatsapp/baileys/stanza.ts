/** What the adapter writes of stanzas by itself, reads of them, and keeps from the library. */
import { Buffer } from "node:buffer";
import type { EventEmitter } from "node:events";
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

type Listener = (stanza: BinaryNode) => void;

/** Those who listen for `event` so far, the library first of all, hear of it no more while `isOurs` says so of the stanza. */
export function withhold(
  ws: Pick<EventEmitter, "listeners" | "removeAllListeners" | "on">,
  event: string,
  isOurs: (stanza: BinaryNode) => boolean,
): void {
  const listeners: Listener[] = ws.listeners(event);
  ws.removeAllListeners(event);
  for (const listener of listeners) ws.on(event, (stanza: BinaryNode) => void (isOurs(stanza) || listener(stanza)));
}
