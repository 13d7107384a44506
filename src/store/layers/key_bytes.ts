/**
 * Encodes keys as bytes that sort in the port's order: for each part a tag, in the order of the kinds, then the part,
 * terminated so that a prefix sorts first. The encoding is one-to-one and reversible.
 */
import { Buffer } from "node:buffer";
import type { Key, KeyPart, Range } from "../kv.ts";

const TEXT = 2, NUMBER = 0x21;
/** Sorts after every tag. */
const AFTER_ALL = 0xff;
/** Texts end with a zero byte; a zero byte inside them is followed by this. */
const ESCAPE = 0xff;
const MOST_KEY_BYTES = 2048;

/**
 * Buffer in which a key is built; it has room for one part more than a key may hold, since length is checked after
 * each.
 */
const scratch = Buffer.alloc(16 * 1024);

/** Encodes a key. Throws RangeError for an empty key and for one that exceeds the contract's 2 KiB. */
export function keyBytes(key: Key): Buffer {
  if (key.length === 0) throw new RangeError("a key needs at least one part");
  let end = 0;
  for (const part of key) {
    end = typeof part === "string" ? writeText(part, end) : writeNumber(part, end);
    if (end > MOST_KEY_BYTES) throw tooLong();
  }
  const bytes = Buffer.allocUnsafe(end);
  scratch.copy(bytes, 0, 0, end);
  return bytes;
}

/** Decodes a key. Throws RangeError if the bytes are none. */
export function keyOfBytes(given: Uint8Array): Key {
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
  const key: KeyPart[] = [];
  for (let at = 0; at < bytes.length;) {
    if (bytes[at] === NUMBER) {
      const body = Buffer.from(bytes.subarray(at + 1, at += 9));
      flipSign(body, (first) => (first & 0x80) === 0);
      key.push(body.readDoubleBE());
    } else {
      const end = textEnd(bytes, at);
      // The byte that follows a zero is none of UTF-8, so it reads as this sign.
      key.push(bytes.toString("utf8", at + 1, end).replaceAll("\0\ufffd", "\0"));
      at = end + 1;
    }
  }
  return key;
}

/** Returns the range's bounds: `from` inclusive, `to` exclusive. */
export function rangeBytes({ prefix, start, end }: Range<unknown>): { from: Buffer; to: Buffer } {
  const below = keyBytes(prefix);
  return {
    // The prefix itself is not below the prefix.
    from: start && start.length > prefix.length ? keyBytes(start) : Buffer.concat([below, Buffer.of(0)]),
    to: end ? keyBytes(end) : Buffer.concat([below, Buffer.of(AFTER_ALL)]),
  };
}

function tooLong(): RangeError {
  return new RangeError(`a key takes at most ${MOST_KEY_BYTES} bytes`);
}

/** Writes the text into the scratch buffer and returns the offset behind it. */
function writeText(text: string, at: number): number {
  if (text.length > MOST_KEY_BYTES) throw tooLong();
  const begun = at;
  scratch[at++] = TEXT;
  // Nearly all texts are ASCII, which needs no encoding.
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === 0 || unit > 0x7f) return writeEscaped(Buffer.from(text), begun + 1);
    scratch[at++] = unit;
  }
  scratch[at++] = 0;
  return at;
}

function writeEscaped(body: Uint8Array, at: number): number {
  for (const byte of body) {
    scratch[at++] = byte;
    if (byte === 0) scratch[at++] = ESCAPE;
  }
  scratch[at++] = 0;
  return at;
}

/** Returns where the text that begins with its tag at `at` has its terminator. Throws RangeError if it has none. */
function textEnd(bytes: Buffer, at: number): number {
  let end = bytes[at] === TEXT ? bytes.indexOf(0, at) : -1;
  while (end >= 0 && bytes[end + 1] === ESCAPE) end = bytes.indexOf(0, end + 1);
  if (end < 0) throw new RangeError("these bytes are no key's");
  return end;
}

function writeNumber(number: number, at: number): number {
  scratch[at] = NUMBER;
  scratch.writeDoubleBE(number, at + 1);
  // IEEE 754 doubles sort bytewise once all bits of negative numbers, and the sign bit of the others, are inverted.
  flipSign(scratch.subarray(at + 1, at + 9), (first) => (first & 0x80) !== 0);
  return at + 9;
}

function flipSign(bytes: Buffer, isNegative: (first: number) => boolean): void {
  if (isNegative(bytes[0]!)) bytes.forEach((byte, i) => bytes[i] = byte ^ 0xff);
  else bytes[0]! ^= 0x80;
}
