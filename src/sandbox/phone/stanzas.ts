/** The small stanzas that a phone answers with: acknowledgements, receipts, retry receipts with keys. */
import {
  type BinaryNode,
  getBinaryNodeChild,
  getBinaryNodeChildBuffer,
  isLidUser,
  jidNormalizedUser,
} from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import type { Device, KeyBundle } from "../device.ts";

type Attributes = BinaryNode["attrs"];

/** Tells the network that a stanza needs no second delivery. */
export function ack(stanza: BinaryNode): BinaryNode {
  const { id, from, participant, type, recipient } = stanza.attrs;
  return node("ack", { id, to: from, class: stanza.tag, participant, type, recipient });
}

/** "Delivered", which also acknowledges the message; for a copy of the owner's own message the type `sender`. */
export function deliveryReceipt(message: BinaryNode, { self, own }: { self: Device; own: boolean }): BinaryNode {
  const { id, from, participant, recipient, category } = message.attrs;
  const type = category === "peer" ? "peer_msg" : own ? "sender" : undefined;
  return node("receipt", { id, to: from, from: ownForm(self, message), participant, recipient, type });
}

/** `now` is Unix ms. */
export function readReceipt(message: BinaryNode, { self, now }: { self: Device; now: number }): BinaryNode {
  const { id, from = "", participant } = message.attrs;
  const t = Math.floor(now / 1000).toString();
  const to = participant ? from : jidNormalizedUser(from);
  return node("receipt", { id, to, from: ownForm(self, message), participant, type: "read", t });
}

/** Asks the sender to encrypt a message anew, for a session made from the enclosed keys. */
export function retryReceipt(
  message: BinaryNode,
  { self, bundle, count }: { self: Device; bundle: KeyBundle; count: number },
): BinaryNode {
  const { id, from, participant, recipient, t } = message.attrs;
  const [preKey] = bundle.preKeys;
  const { signedPreKey } = bundle;
  return node("receipt", { id, to: from, from: ownForm(self, message), participant, recipient, type: "retry" }, [
    node("retry", { count: String(count), id, t, v: "1" }),
    node("registration", {}, bigEndian(bundle.registrationId, 4)),
    node("keys", {}, [
      node("type", {}, Buffer.from([5])),
      node("identity", {}, bundle.identityKey),
      ...(preKey
        ? [node("key", {}, [node("id", {}, bigEndian(preKey.id, 3)), node("value", {}, preKey.publicKey)])]
        : []),
      node("skey", {}, [
        node("id", {}, bigEndian(signedPreKey.id, 3)),
        node("value", {}, signedPreKey.publicKey),
        node("signature", {}, signedPreKey.signature),
      ]),
    ]),
  ]);
}

/** The keys that came with a retry receipt; null when there are none, or they are malformed. */
export function keysOf(retry: BinaryNode): KeyBundle | null {
  const keys = getBinaryNodeChild(retry, "keys");
  const skey = getBinaryNodeChild(keys, "skey");
  const registration = getBinaryNodeChildBuffer(retry, "registration");
  const identityKey = getBinaryNodeChildBuffer(keys, "identity");
  const signedKey = publicKeyOf(skey);
  const signature = getBinaryNodeChildBuffer(skey, "signature");
  if (!registration || identityKey?.length !== 32 || !signedKey || signature?.length !== 64) return null;
  const preKey = publicKeyOf(getBinaryNodeChild(keys, "key"));
  return {
    registrationId: Buffer.from(registration).readUInt32BE(),
    identityKey,
    signedPreKey: { ...signedKey, signature },
    preKeys: preKey ? [preKey] : [],
  };
}

function publicKeyOf(key: BinaryNode | undefined): { id: number; publicKey: Uint8Array } | null {
  const id = getBinaryNodeChildBuffer(key, "id");
  const publicKey = getBinaryNodeChildBuffer(key, "value");
  if (id?.length !== 3 || publicKey?.length !== 32) return null;
  return { id: Buffer.from(id).readUIntBE(0, 3), publicKey };
}

/** Own address in the form in which the other side wrote: by lid, or by number. */
function ownForm(self: Device, { attrs }: BinaryNode): string {
  return isLidUser(attrs.participant ?? attrs.from) ? self.lid : self.jid;
}

/** A node without the attributes that have no value. */
export function node(
  tag: string,
  attrs: Record<string, string | undefined>,
  content?: BinaryNode["content"],
): BinaryNode {
  const present = Object.entries(attrs).filter(([, value]) => value !== undefined);
  return { tag, attrs: Object.fromEntries(present) as Attributes, content };
}

function bigEndian(value: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
}
