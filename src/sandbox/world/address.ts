/** Jids: `<user>[:<device>]@<server>`; a user is a phone number at `s.whatsapp.net` or a LID at `lid`. */
import { jidDecode } from "@whiskeysockets/baileys";

interface Address {
  user: string;
  /** 0 for the phone itself. */
  device: number;
  server: string;
}

/** The chat of all status posts. */
export const STATUS_CHAT = "status@broadcast";

/** Parses a jid; returns null if it is not one. */
export function parseJid(jid: string | undefined): Address | null {
  const decoded = jid === undefined ? undefined : jidDecode(jid);
  if (!decoded?.server) return null;
  const server = decoded.server === "c.us" ? "s.whatsapp.net" : decoded.server;
  return { user: decoded.user, device: decoded.device ?? 0, server };
}

export function makeJid(user: string, server: string, device = 0): string {
  return `${user}${device ? `:${device}` : ""}@${server}`;
}

export function isGroup(jid: string | undefined): boolean {
  return jid?.endsWith("@g.us") ?? false;
}

export function isLid(jid: string | undefined): boolean {
  return jid?.endsWith("@lid") ?? false;
}
