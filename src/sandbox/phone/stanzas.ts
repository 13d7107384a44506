/** The small stanzas that a phone answers with: acknowledgements, receipts, retry receipts with keys. */
import { isLidUser, jidNormalizedUser } from "@whiskeysockets/baileys";
import type { Device, KeyBundle } from "../world/device.ts";
import { type BinaryNode, bytesOf, child, element, uintBytes, uintOf } from "../world/stanza.ts";

/** The type byte of Curve25519 keys. */
const KEY_TYPE = Uint8Array.of(5);

/** Tells the network that a stanza needs no second delivery. */
export function ack(stanza: BinaryNode): BinaryNode {
  const { id, from, participant, type, recipient } = stanza.attrs;
  return element("ack", { id, to: from, class: stanza.tag, participant, type, recipient });
}

/** "Delivered", which also acknowledges the message; for a copy of the owner's own message the type `sender`. */
export function deliveryReceipt(message: BinaryNode, { self, own }: { self: Device; own: boolean }): BinaryNode {
  const { id, from, participant, recipient, category } = message.attrs;
  const type = category === "peer" ? "peer_msg" : own ? "sender" : undefined;
  return element("receipt", { id, to: from, from: ownForm(self, message), participant, recipient, type });
}

/** `now` is Unix ms. */
export function readReceipt(message: BinaryNode, { self, now }: { self: Device; now: number }): BinaryNode {
  const { id, from = "", participant } = message.attrs;
  const t = Math.floor(now / 1000).toString();
  const to = participant ? from : jidNormalizedUser(from);
  return element("receipt", { id, to, from: ownForm(self, message), participant, type: "read", t });
}

/** Asks the sender to encrypt a message anew, for a session made from the enclosed keys. */
export function retryReceipt(
  message: BinaryNode,
  { self, bundle, count }: { self: Device; bundle: KeyBundle; count: number },
): BinaryNode {
  const { id, from, participant, recipient, t } = message.attrs;
  const [preKey] = bundle.preKeys;
  const { signedPreKey } = bundle;
  return element("receipt", { id, to: from, from: ownForm(self, message), participant, recipient, type: "retry" }, [
    element("retry", { count: String(count), id, t, v: "1" }),
    element("registration", {}, uintBytes(bundle.registrationId, 4)),
    element("keys", {}, [
      element("type", {}, KEY_TYPE),
      element("identity", {}, bundle.identityKey),
      ...(preKey
        ? [element("key", {}, [element("id", {}, uintBytes(preKey.id, 3)), element("value", {}, preKey.publicKey)])]
        : []),
      element("skey", {}, [
        element("id", {}, uintBytes(signedPreKey.id, 3)),
        element("value", {}, signedPreKey.publicKey),
        element("signature", {}, signedPreKey.signature),
      ]),
    ]),
  ]);
}

/** The keys that came with a retry receipt; null when there are none, or they are malformed. */
export function keysOf(retry: BinaryNode): KeyBundle | null {
  const keys = child(retry, "keys");
  const registration = bytesOf(child(retry, "registration"));
  const identityKey = bytesOf(child(keys, "identity"));
  const signedKey = publicKeyOf(child(keys, "skey"));
  const signature = bytesOf(child(child(keys, "skey"), "signature"));
  if (registration.length !== 4 || identityKey.length !== 32 || !signedKey || signature.length !== 64) return null;
  const preKey = publicKeyOf(child(keys, "key"));
  return {
    registrationId: uintOf(registration),
    identityKey,
    signedPreKey: { ...signedKey, signature },
    preKeys: preKey ? [preKey] : [],
  };
}

function publicKeyOf(key: BinaryNode | undefined): { id: number; publicKey: Uint8Array } | null {
  const id = bytesOf(child(key, "id"));
  const publicKey = bytesOf(child(key, "value"));
  return id.length === 3 && publicKey.length === 32 ? { id: uintOf(id), publicKey } : null;
}

/** Own address in the form in which the other side wrote: by lid, or by number. */
function ownForm(self: Device, { attrs }: BinaryNode): string {
  return isLidUser(attrs.participant ?? attrs.from) ? self.lid : self.jid;
}
