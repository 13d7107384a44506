/** Frames on the socket: each has a 3-byte length before it; the first follows the client's intro. */
import { WA_HEADER } from "./noise.ts";

/** Longer than any stanza that a client sends; media goes elsewhere. */
const MAX_FRAME_BYTES = 8 * 1024 * 1024;

/** Cuts a byte stream into frames. Throws when the intro is not WhatsApp's or a frame is too long. */
export class FrameReader {
  #pending: Uint8Array = new Uint8Array(0);
  #introduced = false;

  /** The frames that `chunk` completes, in order. */
  push(chunk: Uint8Array): Uint8Array[] {
    this.#pending = this.#pending.length ? concat(this.#pending, chunk) : chunk;
    if (!this.#introduced && !this.#readIntro()) return [];
    const frames: Uint8Array[] = [];
    while (this.#pending.length >= 3) {
      const length = uint24(this.#pending, 0);
      if (length > MAX_FRAME_BYTES) throw new Error("a frame is too long");
      if (this.#pending.length < 3 + length) break;
      frames.push(this.#pending.subarray(3, 3 + length));
      this.#pending = this.#pending.subarray(3 + length);
    }
    return frames;
  }

  /** The intro is `WA` and versions; a client with routing information puts `ED`, 0, 1, length and that before it. */
  #readIntro(): boolean {
    let start = 0;
    if (this.#pending[0] === 0x45 && this.#pending[1] === 0x44) {
      if (this.#pending.length < 7) return false;
      start = 7 + uint24(this.#pending, 4);
    }
    if (this.#pending.length < start + WA_HEADER.length) return false;
    if (!WA_HEADER.every((byte, i) => this.#pending[start + i] === byte)) {
      throw new Error("the intro is not WhatsApp's");
    }
    this.#pending = this.#pending.subarray(start + WA_HEADER.length);
    this.#introduced = true;
    return true;
  }
}

/** A frame with its length before it. */
export function frame(data: Uint8Array): Uint8Array {
  return concat(Uint8Array.of(data.length >>> 16, (data.length >>> 8) & 0xff, data.length & 0xff), data);
}

function uint24(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}
