/**
 * Encryption at rest (promise 6): AES-256-GCM, so that a copied data file reveals no key and no credential.
 * A sealed value is `version (1 byte) | nonce (12) | ciphertext | tag (16)`.
 */
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, hkdfSync, scryptSync } from "node:crypto";
import { OperatorError } from "../errors.ts";
import type { Random } from "../runtime.ts";

export interface Seal {
  seal(plain: Uint8Array): Uint8Array<ArrayBuffer>;
  /** Throws SealError if the value was sealed with another key or was altered. */
  open(sealed: Uint8Array): Uint8Array<ArrayBuffer>;
}

/** A sealed value does not match the key: usually the data was written with another PALOMA_SECRET_KEY. */
export class SealError extends OperatorError {
  override name = "SealError";

  constructor(message: string, options?: ErrorOptions) {
    super("seal_broken", message, options);
  }
}

/** Returns what was sealed; null if it was sealed with another key or was altered. */
export function unsealed(seal: Pick<Seal, "open">, sealed: Uint8Array): Uint8Array | null {
  try {
    return seal.open(sealed);
  } catch (error) {
    if (error instanceof SealError) return null;
    throw error;
  }
}

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Derives the 32-byte key from the operator's secret (`PALOMA_SECRET_KEY`), which may be any text. */
export function sealKey(secret: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, "", "paloma: encryption at rest", 32));
}

/** About 100 ms and 64 MB per guess: a passphrase has far less entropy than a key. */
const SCRYPT = { N: 2 ** 16, r: 8, p: 1, maxmem: 128 * 1024 * 1024 };

/** Derives the 32-byte key from a passphrase chosen by a person. */
export function passphraseKey(passphrase: string, salt: Uint8Array): Uint8Array {
  return new Uint8Array(scryptSync(passphrase, salt, 32, SCRYPT));
}

/** `key`: 32 bytes, see `sealKey`. */
export function makeSeal(key: Uint8Array, random: Random): Seal {
  return {
    seal(plain) {
      const nonce = random.bytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, nonce);
      const sealed = new Uint8Array(1 + NONCE_BYTES + plain.length + TAG_BYTES);
      sealed[0] = VERSION;
      sealed.set(nonce, 1);
      sealed.set(cipher.update(plain), 1 + NONCE_BYTES);
      cipher.final(); // a stream cipher has no remainder
      sealed.set(cipher.getAuthTag(), 1 + NONCE_BYTES + plain.length);
      return sealed;
    },
    open(sealed) {
      if (sealed[0] !== VERSION || sealed.length < 1 + NONCE_BYTES + TAG_BYTES) {
        throw new SealError("This is not a sealed value.");
      }
      const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
      const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
      try {
        const body = sealed.subarray(1 + NONCE_BYTES, -TAG_BYTES);
        return new Uint8Array(Buffer.concat([decipher.update(body), decipher.final()]));
      } catch (cause) {
        throw new SealError("A sealed value does not fit the secret key.", { cause });
      }
    },
  };
}
