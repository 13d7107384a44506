/**
 * Decodes base64 as it arrives. Strict, because a text that lost characters on its way still decodes to some bytes, and
 * would arrive as a broken file.
 */
import { Buffer } from "node:buffer";
import { invalid } from "../../errors.ts";

/** Most characters of a prefix: `data:` and a media type with parameters. */
const MAX_PREFIX = 256;

const WHITE_SPACE = /[\t\n\r ]+/g;

/**
 * Decodes base64 (RFC 4648, section 4) that arrives in chunks, with or without a `data:` prefix; refuses anything else.
 * Line breaks, and blanks beside them, do not count.
 */
export class Base64Decoder {
  readonly #path: string;
  /** True while the text so far may still be a prefix. */
  #atStart = true;
  /** Text that is not decoded yet: an incomplete group of four characters, or a possible prefix. */
  #waiting = "";
  #padded = false;
  #mimetype: string | null = null;

  /** `path` is the field that errors name. */
  constructor(path: string) {
    this.#path = path;
  }

  /** The type in the `data:` prefix, without parameters; null if there is none. */
  get mimetype(): string | null {
    return this.#mimetype;
  }

  /** Returns the bytes that are complete so far. Throws Problem validation_failed. */
  push(text: Uint8Array): Uint8Array<ArrayBuffer> {
    this.#waiting += Buffer.from(text.buffer, text.byteOffset, text.length).toString("latin1");
    // Almost none has blanks, and looking for one is quick.
    if (this.#waiting.includes(" ")) this.#waiting = squeezed(this.#waiting);
    if (this.#atStart && !this.#skipPrefix()) return new Uint8Array();
    // The last one may be beside a line break that has not arrived yet.
    const blank = this.#waiting.indexOf(" ");
    if (blank >= 0 && blank < this.#waiting.length - 1) throw invalid(this.#path, whatIsWrong(this.#waiting));
    return this.#decode("stop-before-partial");
  }

  /**
   * Returns the last bytes. Padding is optional, but not behind a prefix: what writes that also pads. Throws Problem
   * validation_failed.
   */
  end(): Uint8Array<ArrayBuffer> {
    if (this.#waiting.includes(" ")) throw invalid(this.#path, whatIsWrong(this.#waiting));
    return this.#decode(this.#mimetype === null ? "loose" : "strict");
  }

  /** Removes a prefix; returns false while more text is needed to decide. */
  #skipPrefix(): boolean {
    const start = this.#waiting.replaceAll(WHITE_SPACE, "");
    if ("data:".startsWith(start.slice(0, 5).toLowerCase())) {
      const comma = start.indexOf(",");
      if (comma < 0 && start.length < MAX_PREFIX) return false;
      if (comma < 0 || !/;base64$/i.test(start.slice(0, comma))) {
        throw invalid(this.#path, "has a data: prefix that does not end with ;base64,");
      }
      this.#mimetype = start.slice("data:".length, start.indexOf(";"));
      this.#waiting = this.#waiting.slice(this.#waiting.indexOf(",") + 1);
    }
    this.#atStart = false;
    return true;
  }

  #decode(lastChunkHandling: "stop-before-partial" | "loose" | "strict"): Uint8Array<ArrayBuffer> {
    const text = this.#waiting.trimEnd();
    const whiteSpace = this.#waiting.slice(text.length);
    if (this.#padded && text !== "") throw invalid(this.#path, "is padded in the wrong place");
    const bytes = new Uint8Array(Math.ceil(text.length * 3 / 4));
    try {
      const { read, written } = bytes.setFromBase64(text, { lastChunkHandling });
      this.#padded ||= text.lastIndexOf("=", read - 1) >= 0;
      // White space could be millions of characters, and what waits is looked at again with the next chunk.
      this.#waiting = squeezed(text.slice(read) + whiteSpace);
      return bytes.subarray(0, written);
    } catch {
      throw invalid(this.#path, whatIsWrong(text));
    }
  }
}

/** Keeps of each run of white space what matters: whether a line break is in it, else whether a blank is. */
function squeezed(text: string): string {
  return text.replaceAll(WHITE_SPACE, (run) => /[\n\r]/.test(run) ? "\n" : run.includes(" ") ? " " : "");
}

function whatIsWrong(text: string): string {
  if (/^[\w+/=\s-]*$/.test(text) && /[_-]/.test(text)) return "is base64url: write + and / in place of - and _";
  if (/[^A-Za-z0-9+/=\t\n\r ]/.test(text)) return "has characters that are not base64";
  if (text.includes(" ")) return "has a blank inside: a + was decoded as a blank on its way";
  return text.includes("=") ? "is padded in the wrong place" : "is cut off";
}
