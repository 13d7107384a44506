/** Addresses on the network: those of people, and the line's own. */
import {
  areJidsSameUser,
  type AuthenticationCreds,
  isLidUser,
  isPnUser,
  jidDecode,
  jidNormalizedUser,
} from "@whiskeysockets/baileys";
import type { OwnIdentity } from "../connection.ts";

/** The line's own addresses. */
export interface OwnJids {
  id: string;
  lid?: string;
}

/** Servers under which events name nobody, and those that they stand for. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  "c.us": "s.whatsapp.net",
  hosted: "s.whatsapp.net",
  "hosted.lid": "lid",
};
const PLAIN = /^[\w.-]+@(s\.whatsapp\.net|lid|g\.us|newsletter|bot|broadcast)$/;

/** Returns an address of the network as events name it: without a device, and for each person on one server. */
export function plainJid(jid: string): string {
  const { user, server } = jidDecode(jid) ?? {};
  return server === undefined ? "" : `${user}@${OTHER_NAMES[server] ?? server}`;
}

/** The same for what a sender wrote. Null if it is no address. */
export function writtenJid(text: string | null | undefined): string | null {
  const jid = plainJid(text ?? "");
  return PLAIN.test(jid) ? jid : null;
}

/** Returns the digits of a phone-number JID. */
export function digitsOf(jid: string): string {
  return jidDecode(jid)?.user ?? "";
}

/** Returns the digits of the first address that is a phone number; null if none is. */
export function numberIn(...jids: (string | null | undefined)[]): string | null {
  const phone = jids.find((jid) => jid && isPnUser(jid));
  return phone ? digitsOf(phone) : null;
}

/**
 * Whether two addresses may name the same person or chat. A number and a LID can't be compared, so they may. People
 * choose the ids of their messages, so an id alone does not say whose message it is.
 */
export function mayBeSame(one: string, other: string): boolean {
  return areJidsSameUser(one, other) ||
    Boolean(isPnUser(one) && isLidUser(other)) || Boolean(isLidUser(one) && isPnUser(other));
}

/** Whether a participant was given as an address, not as a number. */
export function isAddress(given: string): boolean {
  return isPnUser(given) === true || isLidUser(given) === true;
}

/** Returns the line's current addresses. The socket's `user` is a copy from when the socket was made. */
export function ownJids({ me }: AuthenticationCreds): OwnJids {
  const { id, lid } = me!;
  return { id, ...(lid ? { lid } : {}) };
}

/** Whether an address belongs to the line's account, on any device. */
export function isOwn(jid: string, { id, lid }: OwnJids): boolean {
  return areJidsSameUser(jid, id) || (lid !== undefined && areJidsSameUser(jid, lid));
}

export function identityOf(creds: AuthenticationCreds): OwnIdentity {
  const { id, lid } = creds.me!;
  return { phone: digitsOf(id), lid: lid ? jidNormalizedUser(lid) : null, pushName: ownName(creds) };
}

export function ownName({ me }: AuthenticationCreds): string | null {
  // "~" is the library's placeholder until the phone gives the name.
  return me?.name && me.name !== "~" ? me.name : null;
}

/** Usernames as WhatsApp forms them. */
const USERNAME = /^[a-zA-Z0-9_.]{3,35}$/;

/** Returns the username that an attribute tells, without an @ before it; nothing if it tells none. */
export function usernameIn(attribute: string | undefined): { username?: string } {
  const username = attribute?.replace(/^@/, "") ?? "";
  return USERNAME.test(username) ? { username } : {};
}
