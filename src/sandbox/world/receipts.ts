/**
 * Relays receipts: "delivered" and "read" to the sender's devices, "read" to those of the reader too, a retry to the one
 * device that must encrypt again.
 */
import {
  type Attributes,
  type BinaryNode,
  element,
  formOf,
  isGroup,
  messageId,
  seconds,
  STATUS_CHAT,
} from "./stanza.ts";
import { deliver, type Directory, type Endpoint, endpointsOf, isSame, jidOf } from "./directory.ts";
import { addressIn, type Groups } from "./groups.ts";
import type { Relay } from "./relay.ts";
import type { Runtime } from "../../runtime.ts";

/** Receipts for the account's own devices, about a message that another of them sent or read. */
const FOR_OWN_DEVICES = new Set(["sender", "read-self", "played-self"]);
/**
 * Receipts for the account's own phone: a peer message or history was processed, or a file should be uploaded again.
 */
const FOR_OWN_PHONE = new Set(["peer_msg", "hist_sync", "server-error"]);
/** The names of receipts for a status post, by the type that the viewer's device gave them. */
const FOR_POSTER: ReadonlyMap<string, string> = new Map([
  ["", "delivery"],
  ["inactive", "delivery"],
  ["read", "read"],
]);

interface ReceiptRoutes {
  directory: Directory;
  groups: Groups;
  relay: Relay;
  runtime: Runtime;
}

/** Relays a `<receipt>` of a device. Drops a receipt for an unknown receiver. */
export function relayReceipt(from: Endpoint, receipt: BinaryNode, routes: ReceiptRoutes): void {
  const { to, type, id } = receipt.attrs;
  if (!to || !id) return;
  const t = receipt.attrs.t ?? seconds(routes.runtime.clock.now());
  const seen = to === STATUS_CHAT ? FOR_POSTER.get(type ?? "") : undefined;
  const attributes: Attributes = {
    id,
    type,
    t,
    recipient: type?.endsWith("-self") && !isGroup(to) ? to : receipt.attrs.recipient,
    ...addressOf(from, to, routes.groups),
  };
  const relayed = seen
    ? postReceipt(from, { id, t, type: seen }, routes.runtime)
    : element("receipt", attributes, receipt.content);
  for (const receiver of receiversOf(from, receipt, routes.directory)) {
    if (isSame(receiver, from)) continue;
    if (type === "retry") routes.relay.allowAgain(receiver, id, from);
    deliver(receiver, relayed);
  }
  if (type === "read" && to !== STATUS_CHAT) tellOwnDevices(from, relayed, to);
}

/** Tells the reader's other devices what was read: they get the chat as recipient. */
function tellOwnDevices(from: Endpoint, relayed: BinaryNode, to: string): void {
  const attrs = { ...relayed.attrs, ...isGroup(to) ? {} : { recipient: to } };
  for (const device of endpointsOf(from.account)) {
    if (!isSame(device, from)) deliver(device, { ...relayed, attrs });
  }
}

function receiversOf(from: Endpoint, receipt: BinaryNode, directory: Directory): Endpoint[] {
  const type = receipt.attrs.type ?? "";
  if (FOR_OWN_DEVICES.has(type)) return endpointsOf(from.account);
  if (FOR_OWN_PHONE.has(type)) return [{ account: from.account, device: 0 }];
  const target = directory.resolve(isShared(receipt.attrs.to) ? receipt.attrs.participant : receipt.attrs.to);
  if (!target) return [];
  return type === "retry" ? [target] : endpointsOf(target.account);
}

/** Returns the receipt for a status post, which names message and viewer in its content. */
function postReceipt(
  { account }: Endpoint,
  { id, t, type }: { id: string; t: string; type: string },
  { random }: Runtime,
): BinaryNode {
  const user = element("user", { jid: account.lid, t, type });
  return element("receipt", { class: "status", from: STATUS_CHAT, id: messageId(random), t }, [
    element("participants", { message_id: id }, [user]),
  ]);
}

/** Whether messages in this chat name their author separately. */
function isShared(chat: string | undefined): boolean {
  return isGroup(chat) || chat === STATUS_CHAT;
}

/** Returns the address of the receipt's sender in the form that its receiver used for it. */
function addressOf(from: Endpoint, to: string, groups: Groups): Attributes {
  const group = isGroup(to) ? groups.get(to) : null;
  if (group) {
    const other = group.addressing === "lid" ? "participant_pn" : "participant_lid";
    return {
      from: group.jid,
      participant: addressIn(group, from),
      [other]: group.addressing === "lid" ? from.account.jid : from.account.lid,
      participant_username: from.account.username?.name,
    };
  }
  if (to === STATUS_CHAT) return { from: to, participant: jidOf(from, "lid") };
  return { from: jidOf(from, formOf(to)) };
}
