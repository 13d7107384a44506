/** Decodes quoted-printable (RFC 2045, section 6.7) as it arrives, in which forms of mail programs send parts. */
import { Buffer } from "node:buffer";
import { invalid } from "../../errors.ts";

export class QuotedPrintableDecoder {
  readonly #path: string;
  /** A code at the end of the text so far that may be incomplete. */
  #waiting = "";

  /** `path` is the field that errors name. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Returns the bytes that are complete so far. Throws Problem validation_failed. */
  push(text: Uint8Array): Uint8Array<ArrayBuffer> {
    const whole = this.#waiting + Buffer.from(text.buffer, text.byteOffset, text.length).toString("latin1");
    const end = /=[0-9a-f\r]?$/i.exec(whole)?.index ?? whole.length;
    this.#waiting = whole.slice(end);
    return this.#decoded(whole.slice(0, end));
  }

  /** Returns the last bytes. Throws Problem validation_failed. */
  end(): Uint8Array<ArrayBuffer> {
    // The line break of a soft one at the very end belongs to the boundary that follows.
    return this.#decoded(this.#waiting === "=" ? "" : this.#waiting);
  }

  #decoded(text: string): Uint8Array<ArrayBuffer> {
    const binary = text.replaceAll(/=(\r?\n|[0-9a-f]{2}|)/gi, (_, code: string) => {
      if (code === "") throw invalid(this.#path, "is not quoted-printable");
      return code.endsWith("\n") ? "" : String.fromCharCode(parseInt(code, 16));
    });
    return Uint8Array.from(Buffer.from(binary, "latin1"));
  }
}
