/** The chats of a phone: their jids, and the devices that the phone reaches in them. */
import { jidNormalizedUser } from "@whiskeysockets/baileys";
import { invalid } from "../../errors.ts";
import { isGroup } from "../world/address.ts";
import { isOwn, type PhoneContext } from "./context.ts";

/** Returns the jid of a chat; `to` is a jid or a number's digits. Throws Problem validation_failed. */
export function chatJid(to: string): string {
  if (/^\d{7,15}$/.test(to)) return `${to}@s.whatsapp.net`;
  if (/^[\d-]+@g\.us$/.test(to)) return to;
  if (/^\d+@(s\.whatsapp\.net|lid)$/.test(to)) return jidNormalizedUser(to);
  throw invalid("to", "is neither a number, nor the jid of a user or a group");
}

/**
 * Returns the participants of a group that includes this phone. Throws Problem validation_failed for any other group.
 */
export function membersOf(group: string, { uplink, self }: PhoneContext): string[] {
  const members = uplink.participantsOf(group);
  if (!members.includes(self.jid)) throw invalid("to", "is not a group that this phone is in");
  return members;
}

/**
 * Returns the devices that read what the phone writes to a user; in the owner's own chat, the owner's other devices.
 * Throws Problem validation_failed if there are none.
 */
export function readersOf(user: string, phone: PhoneContext): string[] {
  const readers = phone.uplink.devicesOf(user).filter((device) => device !== phone.self.jid);
  if (readers.length === 0) throw invalid("to", "has no device on this network");
  return readers;
}

/** Returns the jid of a chat with somebody else. Throws Problem validation_failed if the phone reaches nobody there. */
export function chatWithOthers(to: string, phone: PhoneContext): string {
  const chat = chatJid(to);
  if (isGroup(chat)) membersOf(chat, phone);
  else if (isOwn(phone, chat)) throw invalid("to", "is the phone's own number");
  else readersOf(chat, phone);
  return chat;
}
