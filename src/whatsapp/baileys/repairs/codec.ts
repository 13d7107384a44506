/**
 * Repairs of the stanza codec in Baileys 7.0.0-rc14. The sender of a message or call chooses its id, and the ack
 * repeats it. If an id is not written exactly as it was read, the stanza stays without an ack, and the network holds
 * back everything after it.
 */
import { Buffer } from "node:buffer";
import { type BinaryNode, encodeBinaryNode } from "@whiskeysockets/baileys";
import { TOKEN_MAP } from "@whiskeysockets/baileys/lib/WABinary/constants.js";

/**
 * Removes the prototype of the table of texts that have a short form. The library looks up texts there, and would find
 * inherited names such as `constructor`.
 */
export function repairTokens(tokens: object = TOKEN_MAP): void {
  Object.setPrototypeOf(tokens, null);
}

/** Attributes that senders choose and that are not addresses. */
const CHOSEN = ["id", "type"];
/** Marks a text of up to 2^20 bytes; its length in 3 bytes follows. */
const BINARY_20 = 253;
/** Start of a placeholder that the library writes literally, after a mark and a length byte. */
const PLACE = "in place of ";

/** Whether the library would take an id or type for an address, and so write a different text. */
export function isMistaken({ attrs }: BinaryNode): boolean {
  return CHOSEN.some((name) => attrs[name]?.includes("@"));
}

/** Encodes a stanza without content as the library does, except that such texts are written literally. */
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
