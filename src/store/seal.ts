/**
 * Encryption at rest (promise 6): AES-256-GCM, so that a copied data file gives away no key and no credential.
 * A sealed value is `version (1 byte) | nonce (12) | ciphertext | tag (16)`.
 */
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, hkdfSync, scryptSync } from "node:crypto";
import { OperatorError } from "../errors.ts";
import type { Random } from "../runtime.ts";

export interface Seal {
  seal(plain: Uint8Array): Uint8Array<ArrayBuffer>;
  /** Throws SealError when the value was made with another key, or was altered. */
  open(sealed: Uint8Array): Uint8Array<ArrayBuffer>;
}

/** A sealed value does not fit the key: usually PALOMA_SECRET_KEY is not the one that the data was written with. */
export class SealError extends OperatorError {
  readonly code = "seal_broken";
  override name = "SealError";
}

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The 32-byte key that belongs to the operator's secret, which may be any text (`PALOMA_SECRET_KEY`). */
export function sealKey(secret: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, "", "paloma: encryption at rest", 32));
}

/** Some 100 ms and 64 MB a try: a passphrase is no key. */
const SCRYPT = { N: 2 ** 16, r: 8, p: 1, maxmem: 128 * 1024 * 1024 };

/** The 32-byte key that belongs to a passphrase that a person chose. */
export function passphraseKey(passphrase: string, salt: Uint8Array): Uint8Array {
  return new Uint8Array(scryptSync(passphrase, salt, 32, SCRYPT));
}

/** `key` is 32 bytes, see `sealKey`. */
export function makeSeal(key: Uint8Array, random: Random): Seal {
  return {
    seal(plain) {
      const nonce = random.bytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, nonce);
      const sealed = new Uint8Array(1 + NONCE_BYTES + plain.length + TAG_BYTES);
      sealed[0] = VERSION;
      sealed.set(nonce, 1);
      sealed.set(cipher.update(plain), 1 + NONCE_BYTES);
      cipher.final(); // of a stream cipher nothing is left
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
