/**
 * Builds and reads stanzas, on the Baileys package's codec of WhatsApp's binary XML, and the jids in them:
 * `<number>@s.whatsapp.net` is a phone (device 0), `<number>:<n>@s.whatsapp.net` a linked device. Both also have an
 * address under `<lid>@lid`.
 */
import { Buffer } from "node:buffer";
import { type BinaryNode, jidDecode, type JidServer, S_WHATSAPP_NET } from "@whiskeysockets/baileys";
import type { Random } from "../../runtime.ts";

/** The value of a stanza's `edit` attribute when an admin deletes another member's message. */
export const ADMIN_REVOKE = "8";

export {
  type BinaryNode,
  getBinaryNodeChild as child,
  getBinaryNodeChildren as childrenOf,
  jidEncode as makeJid,
} from "@whiskeysockets/baileys";

/** The address of the network itself. */
export const SERVER = S_WHATSAPP_NET;

export type Attributes = Record<string, string | undefined>;

/** Builds a node. Omits undefined attributes. */
export function element(tag: string, attrs: Attributes = {}, content?: BinaryNode["content"]): BinaryNode {
  const present: Record<string, string> = {};
  for (const [name, value] of Object.entries(attrs)) if (value !== undefined) present[name] = value;
  return content === undefined ? { tag, attrs: present } : { tag, attrs: present, content };
}

/** Returns all child nodes, whatever their tag. */
export function elements(node: BinaryNode | undefined): BinaryNode[] {
  return Array.isArray(node?.content) ? node.content : [];
}

/** Returns the content as bytes; empty if there is none. The codec decodes short ASCII content as a string. */
export function bytesOf(node: BinaryNode | undefined): Uint8Array {
  const content = node?.content;
  if (content instanceof Uint8Array) return content;
  return typeof content === "string" ? new TextEncoder().encode(content) : new Uint8Array(0);
}

export function textOf(node: BinaryNode | undefined): string {
  return Buffer.from(bytesOf(node)).toString("utf8");
}

/** Reads a big-endian unsigned integer. */
export function uintOf(bytes: Uint8Array): number {
  return bytes.reduce((value, byte) => value * 256 + byte, 0);
}

/** Returns a time (Unix ms) as stanzas state it: Unix seconds. */
export function seconds(ms: number): string {
  return String(Math.floor(ms / 1000));
}

/** Returns an id in the form that phones use for messages and calls. */
export function messageId(random: Random): string {
  return Buffer.from(random.bytes(16)).toString("hex").toUpperCase();
}

/** Returns the answer to a query. */
export function result(query: BinaryNode, content?: BinaryNode[]): BinaryNode {
  return element("iq", { id: query.attrs.id, from: query.attrs.to ?? SERVER, type: "result" }, content);
}

/** The texts that accompany the codes of refusals. */
const REFUSALS: Readonly<Record<string, string>> = {
  "400": "bad-request",
  "401": "not-authorized",
  "403": "forbidden",
  "404": "item-not-found",
  "406": "not-acceptable",
  "409": "conflict",
  "410": "gone",
  "429": "rate-overlimit",
  "501": "feature-not-implemented",
};

/** Returns an error answer to a query, with an HTTP-like code, and in seconds when to ask again. */
export function refusal(query: BinaryNode, code: string, { backoff }: { backoff?: string } = {}): BinaryNode {
  const error = element("error", { code, text: REFUSALS[code] ?? "error", backoff });
  return element("iq", { id: query.attrs.id, from: query.attrs.to ?? SERVER, type: "error" }, [error]);
}

interface Address {
  user: string;
  /** 0 for the phone itself. */
  device: number;
  server: JidServer;
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

export function isGroup(jid: string | undefined): boolean {
  return jid?.endsWith("@g.us") ?? false;
}

export function isLid(jid: string | undefined): boolean {
  return jid?.endsWith("@lid") ?? false;
}

/** How a person is addressed: by LID or by phone number. */
export type AddressForm = "lid" | "pn";

export function formOf(jid: string | undefined): AddressForm {
  return isLid(jid) ? "lid" : "pn";
}
