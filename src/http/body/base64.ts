/** Decodes base64 that comes in pieces, with or without a `data:` prefix, and refuses what is none (RFC 4648, section 4). */
import { invalid, type Problem } from "../../errors.ts";

/** `data:` and a media type with parameters; longer ones are no prefix. */
const MAX_PREFIX = 256;

const encoder = new TextEncoder();
const decoder = new TextDecoder("latin1");

const PADDING = 64;
const SPACE = 65;
const NONE = 66;
/** What each character stands for: six bits, or one of the above. */
const VALUES = new Uint8Array(256).fill(NONE);
for (const [value, character] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="].entries()) {
  VALUES[character.charCodeAt(0)] = value;
}
for (const character of "\t\n\r ") VALUES[character.charCodeAt(0)] = SPACE;

/** Works on bytes: as strings, a large file would pass through the heap several times over. */
export class Base64Decoder {
  readonly #path: string;
  /** The beginning, as long as it could still be a prefix; then null. */
  #start: string | null = "";
  /** The last characters' bits, and how many of them wait for the next character. */
  #bits = 0;
  #waiting = 0;
  #padding = 0;

  /** `path` is what errors name. */
  constructor(path: string) {
    this.#path = path;
  }

  /** The bytes that can be told by now. `text` is ASCII, or no base64. Throws Problem validation_failed. */
  push(text: Uint8Array): Uint8Array<ArrayBuffer> {
    if (this.#start === null) return this.#decode(text);
    this.#start += decoder.decode(text).replace(/[\t\n\r ]+/g, "");
    const body = this.#afterPrefix(this.#start);
    if (body === null) return new Uint8Array();
    this.#start = null;
    return this.#decode(encoder.encode(body));
  }

  /** The last bytes. Throws Problem validation_failed. */
  end(): Uint8Array<ArrayBuffer> {
    const last = this.#decode(encoder.encode(this.#start ?? ""));
    if (this.#waiting === 6) throw this.#wrong("is cut off");
    return last;
  }

  /** What follows the prefix; null as long as more is needed to tell. */
  #afterPrefix(start: string): string | null {
    if (!"data:".startsWith(start.slice(0, 5).toLowerCase())) return start;
    const comma = start.indexOf(",");
    if (comma < 0 && start.length < MAX_PREFIX) return null;
    if (comma < 0 || !/;base64$/i.test(start.slice(0, comma))) {
      throw this.#wrong("has a data: prefix that does not end with ;base64,");
    }
    return start.slice(comma + 1);
  }

  #decode(text: Uint8Array): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(Math.ceil(text.length * 3 / 4) + 1);
    let length = 0;
    let bits = this.#bits;
    let waiting = this.#waiting;
    for (let i = 0; i < text.length; i++) {
      const value = VALUES[text[i]!]!;
      if (value < PADDING && this.#padding === 0) {
        bits = (bits << 6) | value;
        waiting += 6;
        if (waiting < 8) continue;
        waiting -= 8;
        bytes[length++] = bits >> waiting;
      } else if (value !== SPACE) {
        this.#takeOther(value);
      }
    }
    this.#bits = bits;
    this.#waiting = waiting;
    return bytes.subarray(0, length);
  }

  /** Padding, what comes after padding, and what is no base64. */
  #takeOther(value: number): void {
    if (value === NONE) throw this.#wrong("has characters that are not base64");
    if (value !== PADDING || ++this.#padding > 2) throw this.#wrong("is padded in the wrong place");
  }

  #wrong(message: string): Problem {
    return invalid(this.#path, message);
  }
}
