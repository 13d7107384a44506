/**
 * Repairs of the codec of stanzas, Baileys 7.0.0-rc14. Whoever writes or rings chooses an id, and what acknowledges it
 * repeats that: an id that is not written as it was read leaves the stanza without an ack, and the network holds back what
 * comes after it.
 */
import { Buffer } from "node:buffer";
import { type BinaryNode, encodeBinaryNode } from "@whiskeysockets/baileys";
import { TOKEN_MAP } from "@whiskeysockets/baileys/lib/WABinary/constants.js";

/** The library looks texts up among those that have a short form, and found `constructor` and others there. */
export function repairTokens(tokens: object = TOKEN_MAP): void {
  Object.setPrototypeOf(tokens, null);
}

/** Attributes that strangers choose, and that are no addresses. */
const CHOSEN = ["id", "type"];
/** A text of up to 2^20 bytes, with its length behind. */
const BINARY_20 = 253;
/** Written as itself, behind a mark and its length. */
const PLACE = "in place of ";

/** Whether the library would write it as an address, and so as another text. */
export function isMistaken({ attrs }: BinaryNode): boolean {
  return CHOSEN.some((name) => attrs[name]?.includes("@"));
}

/** A stanza without content as the library encodes it, but for those texts. */
export function encodePlainly({ tag, attrs }: BinaryNode): Buffer {
  const mistaken = CHOSEN.filter((name) => attrs[name]?.includes("@"));
  const places = Object.fromEntries(mistaken.map((name) => [name, PLACE + name]));
  return mistaken.reduce((bytes, name) => {
    const at = bytes.indexOf(places[name]!);
    const text = Buffer.from(attrs[name]!);
    const mark = Buffer.of(BINARY_20, text.length >> 16, (text.length >> 8) & 0xff, text.length & 0xff);
    return Buffer.concat([bytes.subarray(0, at - 2), mark, text, bytes.subarray(at + places[name]!.length)]);
  }, encodeBinaryNode({ tag, attrs: { ...attrs, ...places } }));
}
