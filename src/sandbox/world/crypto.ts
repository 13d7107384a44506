/** The key derivation of the handshake, of linking and of what is added to messages, and what it is encrypted with. */
import { aesDecryptGCM, aesEncryptGCM } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { hkdfSync } from "node:crypto";

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
export function sealGcm(plaintext: Uint8Array, { key, iv, context = new Uint8Array() }: GcmParameters): Buffer {
  return aesEncryptGCM(plaintext, key, iv, context);
}

/** Decrypts what `sealGcm` returned. Throws if it does not authenticate. */
export function openGcm(sealed: Uint8Array, { key, iv, context = new Uint8Array() }: GcmParameters): Buffer {
  return aesDecryptGCM(sealed, key, iv, context);
}
