/**
 * Repairs the library's check of signatures: Baileys 7.0.0-rc14 waits for libsignal to throw at a forged one, but
 * libsignal 6.0.0 answers false, so that everything passes. With it go the two proofs that rest on it: the network's, by
 * the certificates of the handshake, and the phone's, by the account signature of the link.
 */
import { Curve } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { verifySignature } from "libsignal/src/curve.js";
import { LRUCache } from "lru-cache";

/** Signal's type byte of Curve25519 keys. */
const KEY_TYPE = Uint8Array.of(5);

/** The part of the library's curve that is repaired. */
type Verifier = Pick<typeof Curve, "verify">;

/** Certificates that are remembered: a network's servers show the same few in every handshake. */
const REMEMBERED = 32;

/**
 * Makes the curve answer false for a signature that is not the key's, and for what is no key or no signature. What held
 * is remembered: it would take some 10 ms of processor again, twice in each login, when all lines come back at once.
 */
export function repairCurve(curve: Verifier = Curve, verify: typeof verifySignature = verifySignature): void {
  const held = new LRUCache<string, true>({ max: REMEMBERED });
  curve.verify = (publicKey, message, signature) => {
    try {
      const key = publicKey.length === 33 ? Buffer.from(publicKey) : Buffer.concat([KEY_TYPE, publicKey]);
      if (key.length !== 33) return false;
      const all = [key, message, signature].map((bytes) => Buffer.from(bytes).toString("base64")).join(" ");
      if (held.get(all)) return true;
      const holds = verify(key, message, signature);
      if (holds) held.set(all, true);
      return holds;
    } catch {
      return false;
    }
  };
}
