/**
 * What the modules of a phone share: its identity, keys and sessions, its uplink to the network, and the devices that
 * it reaches in its chats.
 */
import { jidNormalizedUser } from "@whiskeysockets/baileys";
import { invalid } from "../../errors.ts";
import { isGroup, isLid, makeJid, parseJid } from "../world/stanza.ts";
import type { Device, PhoneUplink } from "../world/uplink.ts";
import type { Transfers } from "./attachment.ts";
import type { PhoneKeys } from "./keys.ts";
import type { SenderKeys, SignalSessions } from "./signal.ts";

export interface PhoneContext extends Transfers {
  readonly uplink: PhoneUplink;
  readonly self: Device;
  /** The name shown to others. */
  readonly name: string;
  readonly keys: PhoneKeys;
  readonly sessions: SignalSessions;
  readonly senderKeys: SenderKeys;
}

/**
 * Returns the `@lid` form of a user's or device's jid, by which sessions are stored; the jid itself if no LID is known.
 */
export function lidForm(uplink: PhoneUplink, jid: string): string {
  if (isLid(jid)) return jid;
  const lid = parseJid(uplink.lidOf(jidNormalizedUser(jid)) ?? undefined);
  return lid ? makeJid(lid.user, "lid", parseJid(jid)?.device) : jid;
}

/** Whether the user, or the device's user, is this phone's owner. */
export function isOwn({ uplink, self }: PhoneContext, jid: string): boolean {
  return jidNormalizedUser(lidForm(uplink, jid)) === jidNormalizedUser(self.lid);
}

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
export function membersOf(group: string, phone: PhoneContext): string[] {
  const members = phone.uplink.participantsOf(group);
  if (!members.some((member) => isOwn(phone, member))) throw invalid("to", "is not a group that this phone is in");
  return members;
}

/** Returns the devices of users, in the form of address in which the users are given, without the phone itself. */
export function devicesOf(users: readonly string[], { uplink, self }: PhoneContext): string[] {
  return users.flatMap((user) => uplink.devicesOf(user)).filter((device) => device !== self.jid && device !== self.lid);
}

/**
 * Returns the devices that read what the phone writes to a user; in the owner's own chat, the owner's other devices.
 * Throws Problem validation_failed if there are none.
 */
export function readersOf(user: string, phone: PhoneContext): string[] {
  const readers = devicesOf([user], phone);
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
