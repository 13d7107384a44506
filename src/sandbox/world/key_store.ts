/** The public keys that one device has published, as the network keeps and hands them out. */
import { createHash } from "node:crypto";
import type { KeyBundle } from "./device.ts";
import { bytesOf, child, childrenOf, element, uintBytes, uintOf } from "./stanza.ts";
import type { BinaryNode } from "./stanza.ts";

/** Signal's type byte of Curve25519 keys. */
export const KEY_TYPE = Uint8Array.of(5);

type SignedPreKey = KeyBundle["signedPreKey"];

export class KeyStore {
  #lasting: Omit<KeyBundle, "preKeys">;
  /** One-time keys by id, oldest first: each is handed out once. */
  #preKeys = new Map<number, Uint8Array>();

  constructor(bundle: KeyBundle) {
    this.#lasting = bundle;
    this.publish(bundle);
  }

  get preKeyCount(): number {
    return this.#preKeys.size;
  }

  /** Stores what a device publishes: its identity may have changed, its one-time keys are added. */
  publish({ preKeys, ...lasting }: KeyBundle): void {
    this.#lasting = lasting;
    for (const { id, publicKey } of preKeys) this.#preKeys.set(id, publicKey);
  }

  rotate(signedPreKey: SignedPreKey): void {
    this.#lasting = { ...this.#lasting, signedPreKey };
  }

  /** A bundle for one new session: at most one one-time key, which is then used up. */
  take(): KeyBundle {
    const [first] = this.#preKeys;
    if (first) this.#preKeys.delete(first[0]);
    return { ...this.#lasting, preKeys: first ? [{ id: first[0], publicKey: first[1] }] : [] };
  }

  /** SHA-1 over identity, signed key and one-time keys, with which a client checks what the server holds. */
  digest(): BinaryNode {
    const { identityKey, signedPreKey } = this.#lasting;
    const hash = createHash("sha1").update(identityKey).update(signedPreKey.publicKey).update(signedPreKey.signature);
    for (const publicKey of this.#preKeys.values()) hash.update(publicKey);
    return element("digest", {}, [
      ...bundleNodes({ ...this.#lasting, preKeys: [] }),
      element("list", {}, [...this.#preKeys.keys()].map((id) => element("id", {}, uintBytes(id, 3)))),
      element("hash", {}, new Uint8Array(hash.digest())),
    ]);
  }
}

/** The content of `<user>` in the answer to a key query: the registration, then the keys. */
export function bundleNodes(bundle: KeyBundle): BinaryNode[] {
  const { registrationId, identityKey, signedPreKey, preKeys } = bundle;
  return [
    element("registration", {}, uintBytes(registrationId, 4)),
    element("type", {}, KEY_TYPE),
    element("identity", {}, identityKey),
    signedPreKeyNode(signedPreKey),
    ...preKeys.map(({ id, publicKey }) =>
      element("key", {}, [element("id", {}, uintBytes(id, 3)), element("value", {}, publicKey)])
    ),
  ];
}

function signedPreKeyNode({ id, publicKey, signature }: SignedPreKey): BinaryNode {
  return element("skey", {}, [
    element("id", {}, uintBytes(id, 3)),
    element("value", {}, publicKey),
    element("signature", {}, signature),
  ]);
}

/** Reads `<skey>`; null when it is incomplete. */
export function readSignedPreKey(node: BinaryNode | undefined): SignedPreKey | null {
  const publicKey = bytesOf(child(node, "value"));
  const signature = bytesOf(child(node, "signature"));
  if (publicKey.length !== 32 || signature.length !== 64) return null;
  return { id: uintOf(bytesOf(child(node, "id"))), publicKey, signature };
}

/**
 * Reads the keys that a companion uploads, with its one-time keys in a list, or that come with a retry receipt, below a
 * node of their own; null when something is missing.
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
