/**
 * What a registering companion publishes and proves: its keys, and its signature over the identity that a phone signed.
 */
import { Buffer } from "node:buffer";
import { proto } from "@whiskeysockets/baileys";
import { verifySignature } from "libsignal/src/curve.js";
import type { KeyBundle } from "../../world/device.ts";
import { KEY_TYPE } from "../../world/key_store.ts";
import { uintOf } from "../../world/stanza.ts";

const DEVICE_SIGNATURE_PREFIX = Uint8Array.of(6, 1);

/** Returns the encoded identity with both signatures; null if the companion's signature is missing or wrong. */
export function signedByCompanion(
  reply: Uint8Array,
  offered: proto.IADVSignedDeviceIdentity,
  companionKey: Uint8Array,
): Uint8Array | null {
  const { deviceSignature } = proto.ADVSignedDeviceIdentity.decode(reply);
  const { details, accountSignatureKey } = offered;
  if (!deviceSignature?.length || !details || !accountSignatureKey) return null;
  const signed = Buffer.concat([DEVICE_SIGNATURE_PREFIX, details, companionKey, accountSignatureKey]);
  if (!isSignedBy(companionKey, signed, deviceSignature)) return null;
  return proto.ADVSignedDeviceIdentity.encode({ ...offered, deviceSignature }).finish();
}

/** Reads the pairing data of a `ClientPayload`; returns null if it is incomplete. */
export function readPairingData(data: proto.ClientPayload.IDevicePairingRegistrationData): KeyBundle | null {
  const { eRegid, eIdent, eSkeyId, eSkeyVal, eSkeySig } = data;
  if (!eRegid || eIdent?.length !== 32 || !eSkeyId || eSkeyVal?.length !== 32 || !eSkeySig) return null;
  const signedPreKey = { id: uintOf(eSkeyId), publicKey: eSkeyVal, signature: eSkeySig };
  return { registrationId: uintOf(eRegid), identityKey: eIdent, signedPreKey, preKeys: [] };
}

/**
 * Whether `signature` (XEdDSA) over `message` is valid for this key; false for malformed input. Calls libsignal,
 * because `Curve.verify` of Baileys 7.0.0-rc14 ignores the result and always returns true.
 */
function isSignedBy(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  return verifySignature(Buffer.concat([KEY_TYPE, publicKey]), message, signature);
}
