/** The small stanzas that a phone answers with: acknowledgements, receipts, retry receipts with keys. */
import { isLidUser, jidNormalizedUser } from "@whiskeysockets/baileys";
import type { Device, KeyBundle } from "../world/device.ts";
import type { Clock } from "../../runtime.ts";
import { bundleNodes } from "../world/key_store.ts";
import { type BinaryNode, element, seconds } from "../world/stanza.ts";

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

export function readReceipt(message: BinaryNode, { self, clock }: { self: Device; clock: Clock }): BinaryNode {
  const { id, from = "", participant } = message.attrs;
  const to = participant ? from : jidNormalizedUser(from);
  return element("receipt", { id, to, from: ownForm(self, message), participant, type: "read", t: seconds(clock) });
}

/** Asks the sender to encrypt a message anew, for a session made from the enclosed keys. */
export function retryReceipt(
  message: BinaryNode,
  { self, bundle, count }: { self: Device; bundle: KeyBundle; count: number },
): BinaryNode {
  const { id, from, participant, recipient, t } = message.attrs;
  const [registration, ...keys] = bundleNodes(bundle);
  return element("receipt", { id, to: from, from: ownForm(self, message), participant, recipient, type: "retry" }, [
    element("retry", { count: String(count), id, t, v: "1" }),
    registration!,
    element("keys", {}, keys),
  ]);
}

/** Own address in the form in which the other side wrote: by lid, or by number. */
function ownForm(self: Device, { attrs }: BinaryNode): string {
  return isLidUser(attrs.participant ?? attrs.from) ? self.lid : self.jid;
}
