/** Decodes base64 that comes in pieces, with or without a `data:` prefix, and refuses what is none (RFC 4648, section 4). */
import { Buffer } from "node:buffer";
import { invalid, type Problem } from "../../errors.ts";

/** `data:` and a media type with parameters; longer ones are no prefix. */
const MAX_PREFIX = 256;

const BLANKS = /[\t\n\r ]+/g;

export class Base64Decoder {
  readonly #path: string;
  /** What stands before the content may still be a prefix. */
  #atStart = true;
  /** What waits for the rest of its group of four. */
  #waiting = "";
  #padded = false;

  /** `path` is what errors name. */
  constructor(path: string) {
    this.#path = path;
  }

  /** The bytes that are complete so far. `text` is ASCII, or not base64. Throws Problem validation_failed. */
  push(text: Uint8Array): Uint8Array<ArrayBuffer> {
    this.#waiting += Buffer.from(text.buffer, text.byteOffset, text.length).toString("latin1");
    if (this.#atStart && !this.#skipPrefix()) return new Uint8Array();
    return this.#decode("stop-before-partial");
  }

  /** The last bytes; padding may be left out. Throws Problem validation_failed. */
  end(): Uint8Array<ArrayBuffer> {
    return this.#decode("loose");
  }

  /** False while more is needed to decide. */
  #skipPrefix(): boolean {
    const start = this.#waiting = this.#waiting.replace(BLANKS, "");
    if ("data:".startsWith(start.slice(0, 5).toLowerCase())) {
      const comma = start.indexOf(",");
      if (comma < 0 && start.length < MAX_PREFIX) return false;
      if (comma < 0 || !/;base64$/i.test(start.slice(0, comma))) {
        throw this.#wrong("has a data: prefix that does not end with ;base64,");
      }
      this.#waiting = start.slice(comma + 1);
    }
    this.#atStart = false;
    return true;
  }

  #decode(lastChunkHandling: "stop-before-partial" | "loose"): Uint8Array<ArrayBuffer> {
    const text = this.#waiting;
    if (this.#padded && text.replace(BLANKS, "") !== "") throw this.#wrong("is padded in the wrong place");
    const bytes = new Uint8Array(Math.ceil(text.length * 3 / 4));
    try {
      const { read, written } = bytes.setFromBase64(text, { lastChunkHandling });
      this.#padded ||= text.lastIndexOf("=", read - 1) >= 0;
      this.#waiting = text.slice(read);
      return bytes.subarray(0, written);
    } catch {
      throw this.#wrong(whatIsWrong(text));
    }
  }

  #wrong(message: string): Problem {
    return invalid(this.#path, message);
  }
}

function whatIsWrong(text: string): string {
  if (/[^A-Za-z0-9+/=\t\n\r ]/.test(text)) return "has characters that are not base64";
  return text.includes("=") ? "is padded in the wrong place" : "is cut off";
}
