/**
 * XEdDSA: signatures by Curve25519 keys, as Signal's protocol has them (signal.org/docs/specifications/xeddsa). The
 * arithmetic is that of @noble/ed25519 and the runtime, at a tenth of the cost of libsignal's own, which held the event
 * loop for 10 ms with each signature and each check.
 */
import { Buffer } from "node:buffer";
import { createHash, createPublicKey, verify as verifyEd25519 } from "node:crypto";
import { etc, Point } from "@noble/ed25519";
import curve25519 from "curve25519-js";
import { unlessMalformed } from "./retry.ts";

const { p, n } = Point.CURVE();
const KEY_BYTES = 32;
/** Signal's type byte for Curve25519 keys. */
const KEY_TYPE = 5;
const SIGNATURE_BYTES = 64;
const SIGN_BIT = 0x80;
/** What comes before the 32 bytes of an Ed25519 key in its DER form (RFC 8410). */
const ED25519_DER = Buffer.from("302a300506032b6570032100", "hex");

/** Makes libsignal, and Baileys by it, sign and verify by this file: once per process, for all lines. */
export function repairSignatures(): void {
  Object.assign(curve25519, { sign, verify });
}

/** Signs by a private Curve25519 key of 32 bytes. The same key and message always give the same signature. */
export function sign(privateKey: Uint8Array, message: Uint8Array): Uint8Array {
  if (privateKey.length !== KEY_BYTES) throw new RangeError("a private key has 32 bytes");
  const clamped = Uint8Array.from(privateKey);
  clamped[0]! &= 0xf8;
  clamped[31] = clamped[31]! & 0x7f | 0x40;
  const key = etc.mod(numberOf(clamped), n);
  const publicKey = Point.BASE.multiply(key).toBytes();
  const nonce = hashToScalar(clamped, message);
  const commitment = Point.BASE.multiply(nonce).toBytes();
  const challenge = hashToScalar(commitment, publicKey, message);
  const signature = Buffer.concat([commitment, bytesOf(etc.mod(nonce + challenge * key, n))]);
  // A Curve25519 key does not tell the sign of its Ed25519 key, so the signature carries it.
  signature[63]! |= publicKey[31]! & SIGN_BIT;
  return signature;
}

/**
 * Whether the owner of a public Curve25519 key, with its type byte or without, signed the message. False for what is no
 * key or no signature.
 */
export function verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  return unlessMalformed(() => {
    if (signature.length !== SIGNATURE_BYTES) return false;
    const key = toEd25519(withoutType(publicKey));
    const plain = Buffer.from(signature);
    key[31]! |= plain[63]! & SIGN_BIT;
    plain[63]! &= ~SIGN_BIT;
    const der = Buffer.concat([ED25519_DER, key]);
    return verifyEd25519(null, message, createPublicKey({ key: der, format: "der", type: "spki" }), plain);
  }, false);
}

/** Throws for what is no key. */
function withoutType(key: Uint8Array): Uint8Array {
  const bare = key.length === KEY_BYTES + 1 && key[0] === KEY_TYPE ? key.subarray(1) : key;
  if (bare.length !== KEY_BYTES) throw new RangeError("a public key has 32 bytes");
  return bare;
}

/** The Ed25519 key of a Curve25519 key, without its sign: y = (u - 1) / (u + 1). */
function toEd25519(publicKey: Uint8Array): Buffer {
  const masked = Uint8Array.from(publicKey);
  masked[31]! &= 0x7f;
  const u = numberOf(masked);
  return bytesOf(etc.mod((u - 1n) * etc.invert(etc.mod(u + 1n, p), p), p));
}

function hashToScalar(...parts: Uint8Array[]): bigint {
  return etc.mod(numberOf(createHash("sha512").update(Buffer.concat(parts)).digest()), n);
}

function numberOf(littleEndian: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(littleEndian).reverse().toString("hex")}`);
}

function bytesOf(number: bigint): Buffer {
  return Buffer.from(number.toString(16).padStart(2 * KEY_BYTES, "0"), "hex").reverse();
}
