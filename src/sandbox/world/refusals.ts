/** The messages that the network refuses, and the codes with which it does. */
import type { Endpoint } from "./directory.ts";
import type { Group } from "./groups.ts";
import {
  type AddressForm,
  ADMIN_REVOKE,
  type BinaryNode,
  bytesOf,
  child,
  childrenOf,
  formOf,
  isLid,
  STATUS_CHAT,
} from "./stanza.ts";
import type { Trust } from "./trust.ts";

/** The chat of a message, by its address: a group, a person, or neither. */
interface Chat {
  sender: Endpoint;
  group: Group | null;
  peer: Endpoint | null;
  trust: Trust;
  /** The message must carry a token even if the sender is not restricted. */
  needsToken?: boolean;
}

/** Returns the code with which a message is refused, or null. */
export function refusalOfMessage(message: BinaryNode, chat: Chat): string | null {
  const { to = "" } = message.attrs;
  if (isRefusedMenu(message)) return "479";
  if (to === STATUS_CHAT) return isAddressedBy("lid", message) ? null : "479";
  if (to.endsWith("@broadcast") || to.endsWith("@newsletter")) return null;
  if (chat.group) return refusalInGroup(message, chat.group, chat);
  return chat.peer ? refusalTo(chat.peer, message, chat) : "404";
}

/** Whether the message announces options to tap, but not in the only form that is let through. */
function isRefusedMenu(message: BinaryNode): boolean {
  const biz = child(message, "biz");
  const flow = child(child(biz, "interactive"), "native_flow");
  return biz !== undefined && !(flow?.attrs.name === "mixed" && child(biz, "quality_control"));
}

function refusalInGroup(message: BinaryNode, group: Group, { sender: { account } }: Chat): string | null {
  if (!group.participants.includes(account)) return "403";
  const needsAdmin = group.announce || message.attrs.edit === ADMIN_REVOKE;
  if (needsAdmin && !group.admins.has(account)) return "403";
  return isAddressedBy(group.addressing, message) ? null : "421";
}

function refusalTo(peer: Endpoint, message: BinaryNode, { sender, trust, needsToken = false }: Chat): string | null {
  if (!isAddressedBy(formOf(message.attrs.to), message)) return "400";
  if (message.attrs.category === "peer") return null;
  if (!mayAddress(formOf(message.attrs.to), sender)) return isLid(message.attrs.to) ? "400" : "463";
  return trust.refusal(sender.account, peer.account, {
    tctoken: bytesOf(child(message, "tctoken")),
    cstoken: bytesOf(child(message, "cstoken")),
    needsToken,
  });
}

function mayAddress(form: AddressForm, { account: { addressing }, device }: Endpoint): boolean {
  return device === 0 || addressing === null || addressing === form;
}

/** Whether all devices that the message names are named by number, or all by LID, as its chat is. */
function isAddressedBy(form: AddressForm, message: BinaryNode): boolean {
  return childrenOf(child(message, "participants"), "to").every(({ attrs }) => isLid(attrs.jid) === (form === "lid"));
}
