/** The public keys that a device has published, as the network keeps and distributes them. */
import { encodeBigEndian } from "@whiskeysockets/baileys";
import { createHash } from "node:crypto";
import { type BinaryNode, bytesOf, child, childrenOf, element, uintOf } from "./stanza.ts";

/** The public keys that a device publishes, with which others start a Signal session. */
export interface KeyBundle {
  registrationId: number;
  /** 32 bytes, without the type byte. */
  identityKey: Uint8Array;
  signedPreKey: { id: number; publicKey: Uint8Array; signature: Uint8Array };
  /** One-time keys; the network gives each to one requester only. */
  preKeys: { id: number; publicKey: Uint8Array }[];
}

/** The type byte of Curve25519 keys in Signal. */
export const KEY_TYPE = Uint8Array.of(5);

type SignedPreKey = KeyBundle["signedPreKey"];

export class KeyStore {
  #lasting: Omit<KeyBundle, "preKeys">;
  /** One-time keys by id, oldest first; each is given out once. */
  #preKeys = new Map<number, Uint8Array>();

  constructor(bundle: KeyBundle) {
    this.#lasting = bundle;
    this.publish(bundle);
  }

  get preKeyCount(): number {
    return this.#preKeys.size;
  }

  /** Stores what a device publishes: adds the one-time keys and replaces everything else. */
  publish({ preKeys, ...lasting }: KeyBundle): void {
    this.#lasting = lasting;
    for (const { id, publicKey } of preKeys) this.#preKeys.set(id, publicKey);
  }

  rotate(signedPreKey: SignedPreKey): void {
    this.#lasting = { ...this.#lasting, signedPreKey };
  }

  /** Returns a bundle for one new session, and uses up a one-time key if there is one. */
  take(): KeyBundle {
    const [first] = this.#preKeys;
    if (first) this.#preKeys.delete(first[0]);
    return { ...this.#lasting, preKeys: first ? [{ id: first[0], publicKey: first[1] }] : [] };
  }

  /** Returns the SHA-1 over identity, signed key and one-time keys, by which a client checks what the server holds. */
  digest(): BinaryNode {
    const { identityKey, signedPreKey } = this.#lasting;
    const hash = createHash("sha1").update(identityKey).update(signedPreKey.publicKey).update(signedPreKey.signature);
    for (const publicKey of this.#preKeys.values()) hash.update(publicKey);
    return element("digest", {}, [
      ...bundleNodes({ ...this.#lasting, preKeys: [] }),
      element("list", {}, [...this.#preKeys.keys()].map((id) => element("id", {}, encodeBigEndian(id, 3)))),
      element("hash", {}, new Uint8Array(hash.digest())),
    ]);
  }
}

/** Returns the content of `<user>` in the answer to a key query: the registration, then the keys. */
export function bundleNodes(bundle: KeyBundle): BinaryNode[] {
  const { registrationId, identityKey, signedPreKey, preKeys } = bundle;
  return [
    element("registration", {}, encodeBigEndian(registrationId, 4)),
    element("type", {}, KEY_TYPE),
    element("identity", {}, identityKey),
    signedPreKeyNode(signedPreKey),
    ...preKeys.map(({ id, publicKey }) =>
      element("key", {}, [element("id", {}, encodeBigEndian(id, 3)), element("value", {}, publicKey)])
    ),
  ];
}

function signedPreKeyNode({ id, publicKey, signature }: SignedPreKey): BinaryNode {
  return element("skey", {}, [
    element("id", {}, encodeBigEndian(id, 3)),
    element("value", {}, publicKey),
    element("signature", {}, signature),
  ]);
}

/** Parses `<skey>`; returns null if it is incomplete. */
export function readSignedPreKey(node: BinaryNode | undefined): SignedPreKey | null {
  const publicKey = bytesOf(child(node, "value"));
  const signature = bytesOf(child(node, "signature"));
  if (publicKey.length !== 32 || signature.length !== 64) return null;
  return { id: uintOf(bytesOf(child(node, "id"))), publicKey, signature };
}

/**
 * Parses the keys uploaded by a companion (one-time keys in a list), or those in a retry receipt (in a node of their
 * own); returns null if something is missing.
 */
export function readBundle(stanza: BinaryNode, keys: BinaryNode | undefined = stanza): KeyBundle | null {
  const registration = bytesOf(child(stanza, "registration"));
  const identityKey = bytesOf(child(keys, "identity"));
  const signedPreKey = readSignedPreKey(child(keys, "skey"));
  if (identityKey.length !== 32 || registration.length !== 4 || !signedPreKey) return null;
  const preKeys = childrenOf(child(keys, "list") ?? keys, "key")
    .map((key) => ({ id: uintOf(bytesOf(child(key, "id"))), publicKey: bytesOf(child(key, "value")) }))
    .filter(({ publicKey }) => publicKey.length === 32);
  return { registrationId: uintOf(registration), identityKey, signedPreKey, preKeys };
}
