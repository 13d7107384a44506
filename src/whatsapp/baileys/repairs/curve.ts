/**
 * Repairs the library's signature check. Baileys 7.0.0-rc14 expects libsignal to throw on a forged signature, but
 * libsignal 6.0.0 returns false, so every signature passes. Two proofs depend on the check: the network's, by the
 * certificates of the handshake, and the phone's, by the account signature of the link.
 */
import { Curve } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { verifySignature } from "libsignal/src/curve.js";
import { LRUCache } from "lru-cache";

/** Signal's type byte for Curve25519 keys. */
const KEY_TYPE = Uint8Array.of(5);

/** The part of the library's `Curve` that is repaired. */
type Verifier = Pick<typeof Curve, "verify">;

/** Signatures remembered: a network's servers present the same few certificates in every handshake. */
const REMEMBERED = 32;

/**
 * Makes `verify` return false for a signature that does not match the key, and for a malformed key or signature. Valid
 * signatures are remembered: verifying takes some 10 ms of CPU, twice per login, which adds up when all lines reconnect
 * at once.
 */
export function repairCurve(curve: Verifier = Curve, verify: typeof verifySignature = verifySignature): void {
  const verified = new LRUCache<string, true>({ max: REMEMBERED });
  curve.verify = (publicKey, message, signature) => {
    try {
      const key = publicKey.length === 33 ? Buffer.from(publicKey) : Buffer.concat([KEY_TYPE, publicKey]);
      if (key.length !== 33) return false;
      const all = [key, message, signature].map((bytes) => Buffer.from(bytes).toString("base64")).join(" ");
      if (verified.get(all)) return true;
      const holds = verify(key, message, signature);
      if (holds) verified.set(all, true);
      return holds;
    } catch {
      return false;
    }
  };
}
