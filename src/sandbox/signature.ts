/**
 * Signatures by Curve25519 keys (XEdDSA). The package Baileys offers `Curve.verify`, which in 7.0.0-rc14 answers true
 * whatever it is given, as it overlooks libsignal's answer; so libsignal is asked here.
 */
import { Buffer } from "node:buffer";
import { verifySignature } from "libsignal/src/curve.js";

/** Signal's type byte of Curve25519 keys. */
const KEY_TYPE = Uint8Array.of(5);

/** Whether `signature` is the key's over `message`; false for what is no key or no signature. */
export function isSignedBy(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  return verifySignature(Buffer.concat([KEY_TYPE, publicKey]), message, signature);
}
