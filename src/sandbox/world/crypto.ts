/** The key derivation and the encryption of the handshake, of linking and of votes. */
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";

const TAG_BYTES = 16;

interface GcmParameters {
  /** 32 bytes. */
  key: Uint8Array;
  /** 12 bytes. */
  iv: Uint8Array;
  /** Authenticated but not encrypted. */
  context?: Uint8Array;
}

/** HKDF with SHA-256 (RFC 5869). */
export function hkdf(secret: Uint8Array, salt: Uint8Array | string, info: string, length = 32): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, salt, info, length));
}

/** Encrypts with AES-256-GCM; returns ciphertext and tag. */
export function sealGcm(plaintext: Uint8Array, { key, iv, context }: GcmParameters): Buffer {
  const cipher = createCipheriv("aes-256-gcm", key, iv);
  if (context) cipher.setAAD(context);
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** Decrypts what `sealGcm` returned. Throws if it does not authenticate. */
export function openGcm(sealed: Uint8Array, { key, iv, context }: GcmParameters): Buffer {
  const split = sealed.length - TAG_BYTES;
  if (split < 0) throw new Error("it is too short to be authentic");
  const decipher = createDecipheriv("aes-256-gcm", key, iv);
  if (context) decipher.setAAD(context);
  decipher.setAuthTag(sealed.subarray(split));
  return Buffer.concat([decipher.update(sealed.subarray(0, split)), decipher.final()]);
}
