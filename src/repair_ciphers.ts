/**
 * Repairs AES-CBC where the runtime gets it wrong. Deno 2.4 leaves out the padding block when a text's length is a
 * multiple of 16, so that every sixteenth message and file could not be decrypted by whoever receives it; Deno 2.9 is
 * right. The libraries below encrypt with `node:crypto` themselves, so the repair is made to its class, once, at start.
 */
import { Buffer } from "node:buffer";
import { createCipheriv } from "node:crypto";

const BLOCK_BYTES = 16;

type Encoding = Parameters<Buffer["toString"]>[0] | "buffer";

/** The part of a cipher's prototype that is repaired. */
export interface CipherPrototype {
  update(data: string | Uint8Array, inputEncoding?: Encoding, outputEncoding?: Encoding): Buffer | string;
  final(outputEncoding?: Encoding): Buffer | string;
  setAutoPadding(autoPadding?: boolean): unknown;
}

/** Checks the runtime and repairs it if need be; true when it did. The first thing that a process does. */
export function repairCiphers(): boolean {
  const cipher = createCipheriv("aes-256-cbc", new Uint8Array(32), new Uint8Array(BLOCK_BYTES));
  const length = cipher.update(new Uint8Array(BLOCK_BYTES)).length + cipher.final().length;
  if (length === 2 * BLOCK_BYTES) return false;
  repairPrototype(Object.getPrototypeOf(cipher));
  return true;
}

/** Makes ciphers of this prototype add the padding block that is missing. A text of no bytes at all stays unpadded. */
export function repairPrototype(prototype: CipherPrototype): void {
  const { update, final, setAutoPadding } = prototype;
  const states = new WeakMap<CipherPrototype, { bytes: number; blocks: boolean; padded: boolean }>();
  const stateOf = (cipher: CipherPrototype) => {
    const state = states.get(cipher) ?? { bytes: 0, blocks: false, padded: true };
    states.set(cipher, state);
    return state;
  };

  prototype.update = function (data, inputEncoding, outputEncoding) {
    const state = stateOf(this);
    const bytes = typeof data === "string" ? Buffer.from(data, inputEncoding as BufferEncoding) : data;
    if (state.bytes > 0 || bytes.length === 0) {
      state.bytes += bytes.length;
      return encode([update.call(this, bytes)], outputEncoding);
    }
    state.bytes = bytes.length;
    // A cipher that works in blocks keeps a lone byte back; one that works as a stream gives it out at once.
    const head = update.call(this, bytes.subarray(0, 1));
    state.blocks = head.length === 0;
    return encode([head, update.call(this, bytes.subarray(1))], outputEncoding);
  };

  prototype.final = function (outputEncoding) {
    const { bytes, blocks, padded } = stateOf(this);
    const missing = blocks && padded && bytes % BLOCK_BYTES === 0;
    const padding = missing ? update.call(this, Buffer.alloc(BLOCK_BYTES, BLOCK_BYTES)) : Buffer.alloc(0);
    if (missing) setAutoPadding.call(this, false);
    return encode([padding, final.call(this)], outputEncoding);
  };

  prototype.setAutoPadding = function (autoPadding = true) {
    stateOf(this).padded = autoPadding;
    return setAutoPadding.call(this, autoPadding);
  };
}

function encode(parts: (Buffer | string)[], encoding: Encoding): Buffer | string {
  const whole = Buffer.concat(parts.map((part) => Buffer.from(part as Buffer)));
  return encoding === undefined || encoding === "buffer" ? whole : whole.toString(encoding as BufferEncoding);
}
