/** Delivery and read receipts, read from the stanza itself: the library's events may wait in a buffer and get lost. */
import {
  type AuthenticationCreds,
  type BinaryNode,
  getBinaryNodeChildren,
  isJidBroadcast,
  isJidGroup,
  type WASocket,
} from "@whiskeysockets/baileys";
import { detached } from "../../../base/retry.ts";
import { within } from "../../../base/within.ts";
import type { Runtime } from "../../../runtime.ts";
import { StoreError } from "../../../store/kv.ts";
import type { Notice, Receipt } from "../../incoming.ts";
import { isOwn, type OwnJids, ownJids, plainJid } from "../jids.ts";
import { LONGEST_ID } from "../stanza.ts";

/** The meaning of a receipt's type for a message that the line sent. Other types do not concern its status. */
const STATUS: ReadonlyMap<string, Receipt["status"]> = new Map([
  ["", "delivered"],
  // So named on a status post only.
  ["delivery", "delivered"],
  // Delivered to a device whose app is in the background.
  ["inactive", "delivered"],
  ["read", "read"],
  ["played", "read"],
]);

/**
 * If the store does not take a receipt within this time, the connection ends, and the network delivers the receipt to
 * the next.
 */
const KEPT_MS = 10_000;
/**
 * Of one stanza: the people of two messages to the largest group. A stranger's receipt with 50,000 ids took gigabytes,
 * was never kept in time, and so came again.
 */
const MOST_ENTRIES = 2_048;

/** Types of receipts by which another device of the owner tells what was read there. */
const READ_BY_OWNER: ReadonlySet<string> = new Set(["read", "read-self", "played", "played-self"]);

type OwnReading = Extract<Notice, { kind: "read" }>;

interface ReceiptsOptions {
  socket: Pick<WASocket, "ws" | "receiptMutex">;
  creds: AuthenticationCreds;
  receive: (receipt: Receipt) => Promise<void>;
  /** Called with what the owner has read on another device. */
  readByOwner: (reading: OwnReading) => Promise<void>;
  isOver: () => boolean;
  /** Cuts the connection: a receipt that is not on disk must not be acknowledged. */
  broken: () => void;
  runtime: Pick<Runtime, "clock" | "log">;
}

/**
 * Reports receipts. Takes the receipt lock before the library does, so that the library's ack waits for our commit
 * (promise 4).
 */
export function takeReceipts({ socket, creds, receive, readByOwner, isOver, broken, runtime }: ReceiptsOptions): void {
  const { clock, log } = runtime;
  socket.ws.prependListener("CB:receipt", (stanza: BinaryNode) => {
    shorten(stanza);
    const receipts = creds.me ? receiptsOf(stanza, ownJids(creds), clock.now()) : [];
    const reading = creds.me ? ownReadingOf(stanza, ownJids(creds)) : null;
    if ((receipts.length === 0 && !reading) || isOver()) return;
    // Outside the lock, so that receipts that arrive together can share a commit.
    const kept = Promise.all([
      ...receipts.map((receipt) => receive(receipt)),
      ...reading ? [readByOwner(reading)] : [],
    ]);
    kept.catch(() => {}); // the turn below reports it
    const turn = socket.receiptMutex.mutex(async () => {
      try {
        if (await within(clock, KEPT_MS, kept) === "late") broken();
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        broken();
      }
    });
    void detached(turn, (failure) => log.warn(failure, "a receipt could not be kept"));
  });
}

/** Removes the entries of a stanza beyond the bound, for us and for the library. */
function shorten({ content }: BinaryNode): void {
  let left = MOST_ENTRIES;
  for (const list of Array.isArray(content) ? content : []) {
    if (!Array.isArray(list.content)) continue;
    list.content = list.content.slice(0, left);
    left -= list.content.length;
  }
}

/** Returns what a receipt stanza says about messages that the line sent. Empty if it is about anything else. */
export function receiptsOf(stanza: BinaryNode, me: OwnJids, now: number): Receipt[] {
  const { from, participant, recipient, type: common = "", t } = stanza.attrs;
  // A recipient means that another device of the line's owner sent it, about its own activity.
  if (!from || recipient) return [];
  const entries = isOfMany(from) && !participant ? entriesOfMany(stanza) : entriesOfOne(stanza, participant ?? from);
  return entries.flatMap(({ networkId, by, type = common, at = t }) => {
    const status = STATUS.get(type);
    // An id that is unfit as a key would fail the commit of all receipts that share it.
    if (!status || networkId.length > LONGEST_ID || isOwn(by, me)) return [];
    return {
      networkId,
      chat: plainJid(from),
      participant: isOfMany(from) ? plainJid(by) : null,
      status,
      at: timeOf(at) ?? now,
    };
  });
}

/** Returns what a receipt stanza of another device of the line's owner says was read there; null if it is none. */
export function ownReadingOf(stanza: BinaryNode, me: OwnJids): OwnReading | null {
  const { from, participant, recipient, type = "" } = stanza.attrs;
  if (!from || !READ_BY_OWNER.has(type) || !isOwn(participant && isJidGroup(from) ? participant : from, me)) {
    return null;
  }
  const chat = isJidGroup(from) ? from : recipient;
  if (!chat) return null;
  const networkIds = entriesOfOne(stanza, from).map(({ networkId }) => networkId);
  return {
    kind: "read",
    id: null,
    chat: plainJid(chat),
    networkIds: networkIds.filter((id) => id.length <= LONGEST_ID),
  };
}

/** Unix ms; null for an invalid time, which would fail the commit of all receipts that share it. */
function timeOf(seconds: string | undefined): number | null {
  return seconds !== undefined && /^\d{1,12}$/.test(seconds) ? Number(seconds) * 1000 : null;
}

/** One message and one person in a receipt. Type and time (in seconds) are set if they differ from the stanza's. */
interface ReceiptEntry {
  networkId: string;
  by: string;
  type?: string;
  at?: string;
}

/** Reads `<receipt id [participant]>[<list><item id/>…</list>]`: one person, one or more messages. */
function entriesOfOne({ attrs, content }: BinaryNode, by: string): ReceiptEntry[] {
  const more = Array.isArray(content) ? getBinaryNodeChildren(content[0], "item") : [];
  return [attrs.id, ...more.map((item) => item.attrs.id)].flatMap((networkId) => networkId ? [{ networkId, by }] : []);
}

/**
 * Reads `<receipt><participants key=MESSAGE><user jid t/>…</participants>…`, or for a status post
 * `<participants message_id=MESSAGE><user jid t type/>…`. The stanza's own id is not a message id.
 */
function entriesOfMany(stanza: BinaryNode): ReceiptEntry[] {
  return getBinaryNodeChildren(stanza, "participants").flatMap((participants) =>
    getBinaryNodeChildren(participants, "user").flatMap(({ attrs: { jid, type, t: at } }) => {
      const networkId = participants.attrs.key ?? participants.attrs.message_id;
      return networkId && jid ? [{ networkId, by: jid, type, at }] : [];
    })
  );
}

function isOfMany(chat: string): boolean {
  return Boolean(isJidGroup(chat) || isJidBroadcast(chat));
}
