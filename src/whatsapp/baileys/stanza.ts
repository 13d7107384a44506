/**
 * Builds, reads and encodes stanzas, withholds them from the library, and resolves queries to the network's answer or
 * the port's error. The library's errors are Booms; they are read here without importing that package.
 */
import { Buffer } from "node:buffer";
import type { EventEmitter } from "node:events";
import { type BinaryNode, encodeBinaryNode, S_WHATSAPP_NET, type WASocket } from "@whiskeysockets/baileys";
import { executeWMexQuery } from "@whiskeysockets/baileys/lib/Socket/mex.js";
import { TOKEN_MAP } from "@whiskeysockets/baileys/lib/WABinary/constants.js";
import type { Clock } from "../../runtime.ts";
import { within } from "../../base/within.ts";
import { NetworkRefusal, NetworkTimeout } from "../connection.ts";

/** Builds a query, to the network itself unless `to` names a group. */
export function iq(
  { type, xmlns, to = S_WHATSAPP_NET }: { type: "get" | "set"; xmlns: string; to?: string },
  question?: BinaryNode,
): BinaryNode {
  return { tag: "iq", attrs: { to, type, xmlns }, ...(question ? { content: [question] } : {}) };
}

type Asking = Pick<WASocket, "query" | "generateMessageTag">;

/** Asks about people, and resolves to the answer of each: `asked` says what is to be told of the `users`. */
export async function askAboutUsers(
  { query, generateMessageTag }: Asking,
  context: "interactive" | "background",
  { asked, users }: { asked: BinaryNode[]; users: BinaryNode[] },
): Promise<BinaryNode[]> {
  const content = [{ tag: "query", attrs: {}, content: asked }, { tag: "list", attrs: {}, content: users }];
  const attrs = { context, mode: "query", sid: generateMessageTag(), last: "true", index: "0" };
  const answer = await query(iq({ type: "get", xmlns: "usync" }, { tag: "usync", attrs, content }));
  return childrenOf(childrenOf(childrenOf(answer, "usync")[0], "list")[0], "user");
}

/** A GraphQL query of WhatsApp Web: its id, and where its answer is. */
export type MexQuery = readonly [id: string, path: string];

export function askMex<T>(
  { query, generateMessageTag }: Asking,
  variables: { input?: unknown },
  [id, path]: MexQuery,
): Promise<T> {
  return executeWMexQuery<T>(variables, id, path, query, generateMessageTag);
}

/**
 * Returns the children with this tag. The library's function remembers the children of each node that it is called for,
 * and would go on returning those that were removed since.
 */
export function childrenOf(node: BinaryNode | undefined, tag: string): BinaryNode[] {
  return Array.isArray(node?.content) ? node.content.filter((child) => child.tag === tag) : [];
}

/** Returns the content of a node as bytes, empty if it has none. The codec gives short texts as strings. */
export function bytesIn(node: BinaryNode | undefined): Buffer {
  const content = node?.content;
  if (content instanceof Uint8Array) return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  return Buffer.from(typeof content === "string" ? content : "");
}

/**
 * The longest message or call id accepted. Senders choose their ids; a longer one than any app makes is unfit as a key.
 */
export const LONGEST_ID = 200;

type Listener = (stanza: BinaryNode) => void;

/** Withholds stanzas that match `isOurs` from the present listeners of `event`, above all from the library's. */
export function withhold(
  ws: Pick<EventEmitter, "listeners" | "removeAllListeners" | "on">,
  event: string,
  isOurs: (stanza: BinaryNode) => boolean,
): void {
  const listeners: Listener[] = ws.listeners(event);
  ws.removeAllListeners(event);
  for (const listener of listeners) ws.on(event, (stanza: BinaryNode) => void (isOurs(stanza) || listener(stanza)));
}

/** Longer than any answer takes, and below the library's own limit. */
const ANSWER_MS = 20_000;
/** The status with which the library reports a timeout. */
export const TIMED_OUT = 408;

/**
 * Resolves to the answer of the query `asked`. `what` completes the sentence "The messaging network did not …". Throws
 * NetworkRefusal with the network's code, or NetworkTimeout.
 */
export async function answerOf<T>(
  clock: Clock,
  asked: Promise<T>,
  what: string,
  { withinMs = ANSWER_MS }: { withinMs?: number } = {},
): Promise<T> {
  const late = (cause?: unknown) => new NetworkTimeout(`The messaging network did not ${what} in time.`, { cause });
  const answer = await within(clock, withinMs, asked).catch((cause) => {
    if (cause instanceof NetworkRefusal || cause instanceof NetworkTimeout) throw cause;
    if (statusOf(cause) === TIMED_OUT) throw late(cause);
    const code = queryError(cause) || null;
    const reason = code === null ? "" : ` (${code} ${String(cause.message).slice(0, 60)})`;
    throw new NetworkRefusal(`The messaging network did not ${what}${reason}.`, { cause, code });
  });
  if (answer === "late") throw late();
  return answer;
}

/** Returns the error code in the network's answer to a query; null if something else failed. */
export function queryError(error: unknown): number | null {
  return error instanceof Error && "data" in error && typeof error.data === "number" ? error.data : null;
}

/** Returns the status that the library gave the error; null if it has none. */
export function statusOf(error: unknown): number | null {
  const output = error instanceof Error && "output" in error ? error.output : null;
  if (typeof output !== "object" || output === null || !("statusCode" in output)) return null;
  return typeof output.statusCode === "number" ? output.statusCode : null;
}

/**
 * Repairs the codec of Baileys 7.0.0-rc14: removes the prototype of the table of texts that have a short form. The
 * library looks up texts there, and would find inherited names such as `constructor`.
 */
export function repairTokens(tokens: object = TOKEN_MAP): void {
  Object.setPrototypeOf(tokens, null);
}

/**
 * Attributes that senders choose and that are not addresses. The ack repeats the id of a message or call. If that is
 * not written exactly as it was read, the stanza stays without an ack, and the network holds back everything after it.
 */
const CHOSEN = ["id", "type"];
/** Marks a text of up to 2^20 bytes; its length in 3 bytes follows. */
const BINARY_20 = 253;
/** Start of a placeholder that the library writes literally, after a mark and a length byte. */
const PLACE = "in place of ";

/** Whether the library would take an id or type for an address, and so write a different text. */
export function isMistaken({ attrs }: BinaryNode): boolean {
  return CHOSEN.some((name) => attrs[name]?.includes("@"));
}

/** Encodes a stanza without content as the library does, except that such texts are written literally. */
export function encodePlainly({ tag, attrs }: BinaryNode): Buffer {
  const mistaken = CHOSEN.filter((name) => attrs[name]?.includes("@"));
  const places = Object.fromEntries(mistaken.map((name) => [name, PLACE + name]));
  return mistaken.reduce((bytes, name) => {
    const at = bytes.indexOf(places[name]!);
    const text = Buffer.from(attrs[name]!);
    const mark = Buffer.of(BINARY_20, text.length >> 16, (text.length >> 8) & 0xff, text.length & 0xff);
    return Buffer.concat([bytes.subarray(0, at - 2), mark, text, bytes.subarray(at + places[name]!.length)]);
  }, encodeBinaryNode({ tag, attrs: { ...attrs, ...places } }));
}
