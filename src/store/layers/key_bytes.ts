/**
 * Encodes keys as bytes that sort in the port's order: for each part a tag, in the order of the kinds, then the part,
 * terminated so that a prefix sorts first. The encoding is one-to-one and reversible.
 */
import { Buffer } from "node:buffer";
import type { Key, KeyPart, Range } from "../kv.ts";

const BYTES = 1, TEXT = 2, BIGINT = 0x10, NUMBER = 0x21, FALSE = 0x26, TRUE = 0x27;
/** Sorts after every tag. */
const AFTER_ALL = 0xff;
/** Bytes and texts end with a zero byte; a zero byte inside them is followed by this. */
const ESCAPE = 0xff;
/** A bigint's length byte is this plus its length; for negative ones this minus the length, with the bytes inverted. */
const ZERO_LENGTH = 0x80;
const MOST_BIGINT_BYTES = 0x7e;
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
    end = writePart(part, end);
    if (end > MOST_KEY_BYTES) throw new RangeError(`a key takes at most ${MOST_KEY_BYTES} bytes`);
  }
  const bytes = Buffer.allocUnsafe(end);
  scratch.copy(bytes, 0, 0, end);
  return bytes;
}

/** Decodes a key. */
export function keyOfBytes(bytes: Uint8Array): Key {
  const reader = new PartReader(bytes);
  const key: KeyPart[] = [];
  while (!reader.isAtEnd) key.push(reader.next());
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

/** Writes the part into the scratch buffer and returns the offset behind it. */
function writePart(part: KeyPart, at: number): number {
  switch (typeof part) {
    case "string":
      return writeText(part.length > MOST_KEY_BYTES ? tooLong() : part, at);
    case "number": {
      scratch[at] = NUMBER;
      scratch.writeDoubleBE(part, at + 1);
      // IEEE 754 doubles sort bytewise once all bits of negative numbers, and the sign bit of the others, are inverted.
      flipSign(scratch.subarray(at + 1, at + 9), (first) => (first & 0x80) !== 0);
      return at + 9;
    }
    case "bigint":
      return at + bigintBytes(part).copy(scratch, at);
    case "boolean":
      scratch[at] = part ? TRUE : FALSE;
      return at + 1;
    default:
      return writeEscaped(BYTES, at, part.length > MOST_KEY_BYTES ? tooLong() : part);
  }
}

function tooLong(): never {
  throw new RangeError(`a key takes at most ${MOST_KEY_BYTES} bytes`);
}

/** Nearly all texts are ASCII, which needs no encoding. */
function writeText(text: string, at: number): number {
  const begun = at;
  scratch[at++] = TEXT;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === 0 || unit > 0x7f) return writeEscaped(TEXT, begun, Buffer.from(text));
    scratch[at++] = unit;
  }
  scratch[at++] = 0;
  return at;
}

function writeEscaped(tag: number, at: number, body: Uint8Array): number {
  scratch[at++] = tag;
  for (const byte of body) {
    scratch[at++] = byte;
    if (byte === 0) scratch[at++] = ESCAPE;
  }
  scratch[at++] = 0;
  return at;
}

function flipSign(bytes: Buffer, isNegative: (first: number) => boolean): void {
  if (isNegative(bytes[0]!)) bytes.forEach((byte, i) => bytes[i] = byte ^ 0xff);
  else bytes[0]! ^= 0x80;
}

function bigintBytes(value: bigint): Buffer {
  const digits = (value < 0n ? -value : value).toString(16);
  const body = Buffer.from(digits.length % 2 ? `0${digits}` : digits, "hex");
  if (body.length > MOST_BIGINT_BYTES) throw new RangeError("a bigint of a key is too large");
  if (value >= 0n) return Buffer.concat([Buffer.of(BIGINT, ZERO_LENGTH + body.length), body]);
  return Buffer.concat([Buffer.of(BIGINT, ZERO_LENGTH - body.length), body.map((byte) => byte ^ 0xff)]);
}

class PartReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  next(): KeyPart {
    const tag = this.#byte();
    switch (tag) {
      case TEXT:
        return this.#unescaped().toString();
      case BYTES:
        return new Uint8Array(this.#unescaped());
      case NUMBER: {
        const body = this.#take(8);
        flipSign(body, (first) => (first & 0x80) === 0);
        return body.readDoubleBE();
      }
      case BIGINT:
        return this.#bigint();
      default:
        return tag === TRUE;
    }
  }

  #byte(): number {
    return this.#bytes[this.#at++]!;
  }

  #take(length: number): Buffer {
    const part = Buffer.from(this.#bytes.subarray(this.#at, this.#at + length));
    this.#at += length;
    return part;
  }

  #unescaped(): Buffer {
    const parts: Buffer[] = [];
    for (;;) {
      const zero = this.#bytes.indexOf(0, this.#at);
      if (zero < 0) throw new RangeError("these bytes are no key's");
      const isEscaped = this.#bytes[zero + 1] === ESCAPE;
      parts.push(this.#bytes.subarray(this.#at, isEscaped ? zero + 1 : zero));
      this.#at = isEscaped ? zero + 2 : zero + 1;
      if (!isEscaped) return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    }
  }

  #bigint(): bigint {
    const length = this.#byte() - ZERO_LENGTH;
    const body = this.#take(Math.abs(length));
    if (length > 0) return BigInt(`0x${body.toString("hex")}`);
    return -BigInt(`0x${Buffer.from(body.map((byte) => byte ^ 0xff)).toString("hex")}`);
  }
}
