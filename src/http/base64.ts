/** Decodes base64 that comes in pieces, with or without a `data:` prefix, and refuses what is none (RFC 4648, section 4). */
import { Buffer } from "node:buffer";
import { invalid, type Problem } from "../errors.ts";

/** `data:` and a media type with parameters; longer ones are no prefix. */
const MAX_PREFIX = 256;

export class Base64Decoder {
  readonly #path: string;
  /** The beginning, as long as it could still be a prefix; then null. */
  #start: string | null = "";
  /** Characters that wait for the rest of their group of four. */
  #group = "";
  #padding = 0;

  /** `path` is what errors name. */
  constructor(path: string) {
    this.#path = path;
  }

  /** The bytes that can be told by now. Throws Problem validation_failed. */
  push(text: string): Uint8Array<ArrayBuffer> {
    const characters = text.replace(/[\t\n\r ]+/g, "");
    if (this.#start === null) return this.#decode(characters);
    this.#start += characters;
    const body = this.#afterPrefix(this.#start);
    if (body === null) return new Uint8Array();
    this.#start = null;
    return this.#decode(body);
  }

  /** The last bytes. Throws Problem validation_failed. */
  end(): Uint8Array<ArrayBuffer> {
    const start = this.#start ? this.#decode(this.#start) : new Uint8Array();
    if (this.#group.length === 1) throw this.#wrong("is cut off");
    return Buffer.concat([start, Buffer.from(this.#group, "base64")]);
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

  #decode(characters: string): Uint8Array<ArrayBuffer> {
    const body = this.#withoutPadding(characters);
    if (/[^A-Za-z0-9+/]/.test(body)) throw this.#wrong("has characters that are not base64");
    const known = this.#group + body;
    const whole = known.length - known.length % 4;
    this.#group = known.slice(whole);
    return Buffer.from(known.slice(0, whole), "base64");
  }

  #withoutPadding(characters: string): string {
    const start = characters.indexOf("=");
    if (this.#padding > 0 && start !== 0 && characters !== "") throw this.#wrong("is padded in the wrong place");
    if (start < 0) return characters;
    const padding = characters.slice(start);
    this.#padding += padding.length;
    if (!/^=*$/.test(padding) || this.#padding > 2) throw this.#wrong("is padded in the wrong place");
    return characters.slice(0, start);
  }

  #wrong(message: string): Problem {
    return invalid(this.#path, message);
  }
}
