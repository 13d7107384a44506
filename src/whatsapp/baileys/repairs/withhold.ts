/** Keeps stanzas from the library that it would take wrongly. */
import type { BinaryNode } from "@whiskeysockets/baileys";
import type { EventEmitter } from "node:events";

type Listener = (stanza: BinaryNode) => void;

/** Those who listen for `event` so far hear of it no more while `isOurs` says so of the stanza. */
export function withhold(
  ws: Pick<EventEmitter, "listeners" | "removeAllListeners" | "on">,
  event: string,
  isOurs: (stanza: BinaryNode) => boolean,
): void {
  const listeners: Listener[] = ws.listeners(event);
  ws.removeAllListeners(event);
  for (const listener of listeners) ws.on(event, (stanza: BinaryNode) => void (isOurs(stanza) || listener(stanza)));
}
