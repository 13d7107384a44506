/**
 * Scans JSON text as it arrives and keeps it, except for the content of one member, a base64 string, which is streamed.
 * The scanner does not validate: the kept text is parsed afterwards.
 */
import { Buffer } from "node:buffer";
import { GatheredBytes } from "../../base/gathered_bytes.ts";
import { unlessMalformed } from "../../base/retry.ts";
import { invalid } from "../../errors.ts";
import { MIB, tooLarge } from "./body.ts";

/** Limit for everything except the string: recipient, names, a caption. */
const MAX_REST = MIB;
/** Replaces content that is not base64; the decoder refuses it. */
const FOREIGN = "\x7f";
/** Names longer than this, escapes included, cannot be the member's. */
const MAX_NAME = 64;

const encoder = new TextEncoder();

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN = [0x7b, 0x5b];
const CLOSE = [0x7d, 0x5d];

export class JsonScanner {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #member: string;
  #chunk: Uint8Array = new Uint8Array();
  #at = 0;
  readonly #kept = new GatheredBytes();
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** The last string at depth 1 with its escapes, and whether a colon made it the name of the next value. */
  #text: number[] = [];
  #isName = false;
  readonly #content = new Unescaper();

  constructor(chunks: AsyncIterable<Uint8Array>, member: string) {
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#member = member;
  }

  /** Advances to the first character of the member's string; resolves to false at the end of the body. */
  async findMember(): Promise<boolean> {
    do {
      const start = this.#at;
      while (this.#at < this.#chunk.length) {
        if (!this.#step(this.#chunk[this.#at++]!)) continue;
        this.#keep(this.#chunk.subarray(start, this.#at));
        return true;
      }
      this.#keep(this.#chunk.subarray(start));
    } while (await this.#next());
    return false;
  }

  /** Resolves to more of the string's content, unescaped; null at its end. */
  async readString(): Promise<Uint8Array | null> {
    if (this.#at === this.#chunk.length && !await this.#next()) return null;
    const end = this.#chunk.indexOf(QUOTE, this.#at);
    if (end === this.#at) return this.#endString();
    const bytes = this.#chunk.subarray(this.#at, end < 0 ? undefined : end);
    this.#at += bytes.length;
    return this.#content.push(bytes);
  }

  /** Stops reading; another reader may take the rest of the body. */
  async end(): Promise<void> {
    await this.#chunks.return?.();
  }

  /** Returns the text without the content of the member. */
  rest(): Uint8Array {
    return this.#kept.all;
  }

  /** Processes one byte; returns whether it opened the member's string. */
  #step(byte: number): boolean {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === QUOTE) this.#inString = false;
      if (this.#inString && this.#depth === 1 && this.#text.length < MAX_NAME) this.#text.push(byte);
    } else if (byte === QUOTE) {
      if (this.#depth === 1 && this.#isName && this.#nameIsMember()) return true;
      this.#inString = true;
      this.#text = [];
      this.#isName = false;
    } else if (byte === COLON) {
      this.#isName = this.#depth === 1;
    } else if (byte === COMMA) {
      this.#isName = false;
    } else if (OPEN.includes(byte)) {
      this.#depth++;
      this.#isName = false;
    } else if (CLOSE.includes(byte)) {
      this.#depth--;
    }
    return false;
  }

  #nameIsMember(): boolean {
    return unlessMalformed(() => JSON.parse(`"${Buffer.from(this.#text).toString()}"`) === this.#member, false);
  }

  /** Called at the closing quote. */
  #endString(): null {
    if (this.#content.isCut) throw invalid(this.#member, "has characters that are not base64");
    this.#isName = false;
    this.#keep(this.#chunk.subarray(this.#at, ++this.#at));
    return null;
  }

  async #next(): Promise<boolean> {
    const { done, value } = await this.#chunks.next();
    if (done) return false;
    this.#chunk = value;
    this.#at = 0;
    return true;
  }

  #keep(bytes: Uint8Array): void {
    if (this.#kept.size + bytes.length > MAX_REST) throw tooLarge(MAX_REST);
    this.#kept.add(bytes);
  }
}

/** Unescapes a string that arrives in chunks: PHP writes `\/`, .NET `\u002B`, MIME encoders `\r\n`. */
class Unescaper {
  /** The beginning of an escape that continues in the next chunk. */
  #cut = "";

  get isCut(): boolean {
    return this.#cut !== "";
  }

  push(bytes: Uint8Array): Uint8Array {
    if (!this.isCut && !bytes.includes(BACKSLASH)) return bytes;
    const whole = this.#cut + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
    const cut = /\\(u[0-9a-fA-F]{0,3})?$/.exec(whole)?.index ?? whole.length;
    this.#cut = whole.slice(cut);
    return encoder.encode(parsed(whole.slice(0, cut)));
  }
}

/**
 * Unescapes with the JSON parser, the fastest way. Raw line breaks and tabs, invalid in JSON, become line breaks, which
 * base64 ignores.
 */
function parsed(content: string): string {
  return unlessMalformed(() => JSON.parse(`"${content.replaceAll(/[\t\n\r]/g, "\\n")}"`), FOREIGN);
}
