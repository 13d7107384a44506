/** The Signal keys of a phone: identity, signed pre-key, and a supply of one-time pre-keys that is refilled. */
import { Curve, type KeyPair } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import type { Random } from "../../runtime.ts";
import { KEY_TYPE, type KeyBundle } from "../world/key_store.ts";

/** Number of one-time keys after the first upload and after each refill. */
const STOCK = 60;
/** The supply is refilled when it falls below this number. */
const LOW_STOCK = 20;

export interface PhoneKeys {
  /** Also signs the ADV identity of companions. */
  readonly identity: KeyPair;
  readonly registrationId: number;
  readonly signedPreKey: { id: number; keyPair: KeyPair; signature: Uint8Array };
  readonly preKeys: Map<number, KeyPair>;
  nextPreKeyId: number;
}

export function makeKeys(random: Random): PhoneKeys {
  const identity = Curve.generateKeyPair();
  const keyPair = Curve.generateKeyPair();
  return {
    identity,
    registrationId: random.between(1, 0x3fff),
    signedPreKey: { id: 1, keyPair, signature: Curve.sign(identity.private, typedPublic(keyPair.public)) },
    preKeys: new Map(),
    nextPreKeyId: 1,
  };
}

/** Returns a bundle with new one-time keys to publish; null while the supply suffices. */
export function refill(keys: PhoneKeys): KeyBundle | null {
  return keys.preKeys.size < LOW_STOCK ? newBundle(keys, STOCK - keys.preKeys.size) : null;
}

/** Creates `count` one-time keys; returns the bundle to publish, with them and the long-lived public keys. */
export function newBundle(keys: PhoneKeys, count: number): KeyBundle {
  const preKeys = Array.from({ length: count }, () => {
    const id = keys.nextPreKeyId++;
    const pair = Curve.generateKeyPair();
    keys.preKeys.set(id, pair);
    return { id, publicKey: pair.public };
  });
  const { id, keyPair, signature } = keys.signedPreKey;
  const signedPreKey = { id, publicKey: keyPair.public, signature };
  return { registrationId: keys.registrationId, identityKey: keys.identity.public, signedPreKey, preKeys };
}

/** Returns a public key with its type byte, the form in which Signal signs and sends it. */
export function typedPublic(key: Uint8Array): Buffer {
  return key.length === 33 ? Buffer.from(key) : Buffer.concat([KEY_TYPE, key]);
}
