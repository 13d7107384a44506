/**
 * Repairs the library's check of signatures: Baileys 7.0.0-rc14 waits for libsignal to throw at a forged one, but
 * libsignal 6.0.0 answers false, so that everything passes. With it go the two proofs that rest on it: the network's, by
 * the certificates of the handshake, and the phone's, by the account signature of the link.
 */
import { Curve } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { verifySignature } from "libsignal/src/curve.js";

/** Signal's type byte of Curve25519 keys. */
const KEY_TYPE = Uint8Array.of(5);

/** The part of the library's curve that is repaired. */
export type Verifier = Pick<typeof Curve, "verify">;

/** Makes the curve answer false for a signature that is not the key's, and for what is no key or no signature. */
export function repairCurve(curve: Verifier = Curve): void {
  curve.verify = (publicKey, message, signature) => {
    try {
      const key = publicKey.length === 33 ? Buffer.from(publicKey) : Buffer.concat([KEY_TYPE, publicKey]);
      return key.length === 33 && verifySignature(key, message, signature);
    } catch {
      return false;
    }
  };
}
