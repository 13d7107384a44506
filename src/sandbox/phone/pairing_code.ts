/**
 * A phone's half of linking by code. Both sides encrypt an ephemeral key with the eight characters that the owner
 * types, agree on a shared secret, and derive the ADV secret (which a QR would contain) from it and their identities.
 */
import { aesDecryptCTR, aesEncryptCTR, Curve, derivePairingCodeKey } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { unlessMalformed } from "../../base/retry.ts";
import { invalid } from "../../errors.ts";
import type { Random } from "../../runtime.ts";
import { hkdf, openGcm } from "../world/crypto.ts";
import type { CodeRequest, CompanionFinish, LinkRequest, PrimaryHello } from "../world/uplink.ts";
import type { PhoneKeys } from "./keys.ts";

/** Protocol constants. */
const SALT_BYTES = 32;
const CTR_IV_BYTES = 16;
const GCM_IV_BYTES = 12;
const GCM_TAG_BYTES = 16;
const KEY_BYTES = 32;

/** Normalises a code: upper case, no dash. Throws Problem validation_failed. */
export function readCode(typed: string): string {
  const code = typed.replace(/[\s-]/g, "").toUpperCase();
  if (!/^[0-9A-Z]{8}$/.test(code)) throw invalid("code", "is not a pairing code of 8 letters and digits");
  return code;
}

/** Returns the content of primary_hello, and a function that reads the companion's answer. */
export async function beginCodeExchange(
  keys: PhoneKeys,
  request: CodeRequest,
  { code, random }: { code: string; random: Random },
) {
  const ephemeral = Curve.generateKeyPair();
  const companionEphemeral = await unwrapKey(request.wrappedEphemeral, code);
  return {
    hello: {
      wrappedEphemeral: await wrapKey(ephemeral.public, code, random),
      identityPublic: keys.identity.public,
    } satisfies PrimaryHello,
    /** Returns the companion to sign for; null if the answer is not valid, as after a mistyped code. */
    finish(answer: CompanionFinish): LinkRequest | null {
      if (companionEphemeral.length !== KEY_BYTES) return null;
      const shared = Curve.sharedKey(ephemeral.private, companionEphemeral);
      const bundle = openBundle(answer.wrappedKeyBundle, shared);
      if (!bundle || !bundle.companionIdentity.equals(answer.identityPublic)) return null;
      if (!bundle.primaryIdentity.equals(keys.identity.public)) return null;
      const identityShared = Curve.sharedKey(keys.identity.private, bundle.companionIdentity);
      const secret = Buffer.concat([shared, identityShared, bundle.random]);
      return { identityPublic: bundle.companionIdentity, advSecret: hkdf(secret, "", "adv_secret") };
    },
  };
}

async function wrapKey(key: Uint8Array, code: string, random: Random): Promise<Uint8Array> {
  const salt = random.bytes(SALT_BYTES);
  const iv = random.bytes(CTR_IV_BYTES);
  return Buffer.concat([salt, iv, aesEncryptCTR(key, await derivePairingCodeKey(code, Buffer.from(salt)), iv)]);
}

async function unwrapKey(wrapped: Uint8Array, code: string): Promise<Buffer> {
  const start = SALT_BYTES + CTR_IV_BYTES;
  const key = await derivePairingCodeKey(code, Buffer.from(wrapped.subarray(0, SALT_BYTES)));
  return aesDecryptCTR(wrapped.subarray(start, start + KEY_BYTES), key, wrapped.subarray(SALT_BYTES, start));
}

/** Decrypts salt, IV, and AES-GCM of companion identity, primary identity, random bytes; null on a wrong tag. */
function openBundle(wrapped: Uint8Array, shared: Uint8Array) {
  const iv = wrapped.subarray(SALT_BYTES, SALT_BYTES + GCM_IV_BYTES);
  const sealed = wrapped.subarray(SALT_BYTES + GCM_IV_BYTES);
  if (sealed.length !== 3 * KEY_BYTES + GCM_TAG_BYTES) return null;
  const key = hkdf(shared, wrapped.subarray(0, SALT_BYTES), "link_code_pairing_key_bundle_encryption_key");
  const opened = unlessMalformed(() => openGcm(sealed, { key, iv }), null);
  return opened && {
    companionIdentity: opened.subarray(0, KEY_BYTES),
    primaryIdentity: opened.subarray(KEY_BYTES, 2 * KEY_BYTES),
    random: opened.subarray(2 * KEY_BYTES),
  };
}
