/**
 * The key agreement between a new device (the companion) and the phone (the primary) during a passkey link. Nobody in
 * between learns the key: the companion commits to its nonce before it knows the phone's nonce, so an attacker in the
 * middle would have to guess, and the two codes shown would differ. Sources: see `passkey.ts`.
 */
import { Buffer } from "node:buffer";
import { createHash, createHmac, hkdfSync } from "node:crypto";
import { aesEncryptGCM, type AuthenticationCreds, bytesToCrockford, Curve, proto } from "@whiskeysockets/baileys";
import type { Random } from "../../../runtime.ts";

const HANDOFF_INFO = "shortcake-passkey-handoff-v1";
const PAIRING_KEY_INFO = "Pairing Information Encryption Key";
const KEY_BYTES = 32;
const NONCE_BYTES = 32;
const ADV_SECRET_BYTES = 32;
const IV_BYTES = 12;
const CODE_BYTES = 5;
/** The type that the registration announces for this client. Its number is part of the key derivation. */
const DEVICE_TYPE = proto.DeviceProps.PlatformType.CHROME;

export type Companion = ReturnType<typeof makeCompanion>;

export function makeCompanion(ref: string, random: Random) {
  const keys = Curve.generateKeyPair();
  const nonce = random.bytes(NONCE_BYTES);
  const identity = proto.CompanionEphemeralIdentity
    .encode({ publicKey: keys.public, deviceType: DEVICE_TYPE, ref }).finish();
  const hash = createHash("sha256").update(identity).update(nonce).digest();
  return {
    /** The identity that requests the link, and a commitment to the nonce, which is revealed later. */
    prologue: proto.ProloguePayload.encode({ companionEphemeralIdentity: identity, commitment: { hash } }).finish(),
    nonce,
    /**
     * Returns the key shared with the phone, and the code that both show. Takes an encoded `PrimaryEphemeralIdentity`;
     * throws if it is not one.
     */
    meet(encoded: Uint8Array): { key: Uint8Array; code: string } {
      const primary = proto.PrimaryEphemeralIdentity.decode(encoded);
      if (primary.publicKey?.length !== KEY_BYTES || primary.nonce?.length !== NONCE_BYTES) {
        throw new Error("the phone's key is invalid");
      }
      const key = derive(Curve.sharedKey(keys.private, primary.publicKey), {
        salt: `Companion Pairing ${DEVICE_TYPE} with ref ${ref}`,
        info: PAIRING_KEY_INFO,
      });
      const digest = createHash("sha256").update(nonce).update(primary.publicKey).digest();
      const shown = primary.nonce.subarray(0, CODE_BYTES).map((byte, i) => byte ^ digest[i]!);
      const code = bytesToCrockford(Buffer.from(shown));
      return { key, code: `${code.slice(0, 4)}-${code.slice(4)}` };
    },
  };
}

/** Creates a secret for the link, which is revealed only by its QR or its code. */
export function makeAdvSecret(random: Random): string {
  return Buffer.from(random.bytes(ADV_SECRET_BYTES)).toString("base64");
}

/** Derives a key from an ADV secret that the phone has scanned, or has agreed on by the code. */
export function handoffKey(advSecret: Uint8Array): Uint8Array {
  return derive(advSecret, { info: HANDOFF_INFO });
}

export function handoffProof(key: Uint8Array, prologue: Uint8Array): Uint8Array {
  return createHmac("sha256", key).update(prologue).digest();
}

/** Returns the keys of the link, encrypted for the phone: an encoded `EncryptedPairingRequest`. */
export function pairingRequest(creds: AuthenticationCreds, key: Uint8Array, random: Random): Uint8Array {
  const request = proto.PairingRequest.encode({
    companionPublicKey: creds.noiseKey.public,
    companionIdentityKey: creds.signedIdentityKey.public,
    advSecret: Buffer.from(creds.advSecretKey, "base64"),
  }).finish();
  const iv = random.bytes(IV_BYTES);
  const encryptedPayload = aesEncryptGCM(request, key, iv, new Uint8Array(0));
  return proto.EncryptedPairingRequest.encode({ encryptedPayload, iv }).finish();
}

/** Returns the key that HKDF-SHA256 derives, of 32 bytes. */
export function derive(
  secret: Uint8Array,
  { salt = "", info }: { salt?: string | Uint8Array; info: string },
): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, salt, info, KEY_BYTES));
}
