/** The parts of a phone that its modules share: its identity, keys and sessions, and its uplink to the network. */
import { jidNormalizedUser } from "@whiskeysockets/baileys";
import { isLid, makeJid, parseJid } from "../world/address.ts";
import type { Device } from "../world/device.ts";
import type { PhoneUplink } from "../world/uplink.ts";
import type { Transfers } from "./attachment.ts";
import type { PhoneKeys } from "./keys.ts";
import type { SenderKeys } from "./sender_keys.ts";
import type { SignalSessions } from "./signal.ts";

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
