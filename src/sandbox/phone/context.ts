/** What the parts of one phone share: who it is, its keys and sessions, and its way to the network. */
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
  /** The name that others see. */
  readonly name: string;
  readonly keys: PhoneKeys;
  readonly sessions: SignalSessions;
  readonly senderKeys: SenderKeys;
}

/** The `@lid` form of a user's or device's jid, under which sessions are kept; the jid itself where none is known. */
export function lidForm(uplink: PhoneUplink, jid: string): string {
  if (isLid(jid)) return jid;
  const lid = parseJid(uplink.lidOf(jidNormalizedUser(jid)) ?? undefined);
  return lid ? makeJid(lid.user, "lid", parseJid(jid)?.device) : jid;
}

/** Whether a user or device is this phone's owner. */
export function isOwn({ uplink, self }: PhoneContext, jid: string): boolean {
  return jidNormalizedUser(lidForm(uplink, jid)) === jidNormalizedUser(self.lid);
}
