/** Addresses on the network: a person's, and the line's own. */
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

/** The digits of a phone-number JID. */
export function digitsOf(jid: string): string {
  return jidDecode(jid)?.user ?? "";
}

/** The digits of whichever address is a phone number; null when none is. */
export function numberIn(...jids: (string | null | undefined)[]): string | null {
  const phone = jids.find((jid) => jid && isPnUser(jid));
  return phone ? digitsOf(phone) : null;
}

/** Whether a participant was given as an address and not as a number. */
export function isAddress(given: string): boolean {
  return isPnUser(given) === true || isLidUser(given) === true;
}

// The socket's `user` is a copy from when the socket was made: the credentials say who the line is now.
export function ownJids({ me }: AuthenticationCreds): OwnJids {
  const { id, lid } = me!;
  return { id, ...(lid ? { lid } : {}) };
}

/** Whether an address is the line's account, on whatever device. */
export function isOwn(jid: string, { id, lid }: OwnJids): boolean {
  return areJidsSameUser(jid, id) || (lid !== undefined && areJidsSameUser(jid, lid));
}

export function identityOf(creds: AuthenticationCreds): OwnIdentity {
  const { id, lid } = creds.me!;
  return { phone: digitsOf(id), lid: lid ? jidNormalizedUser(lid) : null, pushName: ownName(creds) };
}

export function ownName({ me }: AuthenticationCreds): string | null {
  // "~" is what the library calls a line before the phone gives its name.
  return me?.name && me.name !== "~" ? me.name : null;
}
