/**
 * Repairs the cost of the Signal library's key derivation: libsignal 6.0.0 puts HKDF (RFC 5869) together of up to four
 * HMACs, each an object of the runtime's streams. The runtime has it as one call, with the same result.
 */
import { Buffer } from "node:buffer";
import { hkdfSync } from "node:crypto";
import crypto from "libsignal/src/crypto.js";

/** The part of the library's cryptography that is repaired. */
export interface Derivation {
  /** `chunks` keys of 32 bytes; three when left out. */
  deriveSecrets(input: Uint8Array, salt: Uint8Array, info: Uint8Array, chunks?: number): Buffer[];
}

const CHUNK_BYTES = 32;

/** Makes the library derive keys in one call. */
export function repairDerivation(derivation: Derivation = crypto): void {
  derivation.deriveSecrets = (input, salt, info, chunks = 3) => {
    const secrets = Buffer.from(hkdfSync("sha256", input, salt, info, chunks * CHUNK_BYTES));
    return Array.from({ length: chunks }, (_, i) => secrets.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES));
  };
}
