/** Delivery and read receipts, read from the stanza itself: the library's events may wait in a buffer and get lost. */
import {
  type AuthenticationCreds,
  type BinaryNode,
  getBinaryNodeChildren,
  isJidBroadcast,
  isJidGroup,
  jidNormalizedUser,
  type WASocket,
} from "@whiskeysockets/baileys";
import { detached } from "../../../base/detached.ts";
import { within } from "../../../base/within.ts";
import type { Runtime } from "../../../runtime.ts";
import { StoreError } from "../../../store/kv.ts";
import type { Receipt } from "../../incoming.ts";
import { isOwn, type OwnJids, ownJids } from "../jids.ts";
import { LONGEST_ID } from "./strays.ts";

/** What a receipt's type says of a message that the line sent; types that are not here say nothing of that. */
const STATUS: ReadonlyMap<string, Receipt["status"]> = new Map([
  ["", "delivered"],
  // Delivered to a device whose app is in the background.
  ["inactive", "delivered"],
  ["read", "read"],
  ["played", "read"],
]);

/** A store that does not take a receipt within this ends the connection; the network gives it again to the next one. */
const KEPT_MS = 10_000;

interface ReceiptsOptions {
  socket: Pick<WASocket, "ws" | "receiptMutex">;
  creds: AuthenticationCreds;
  receive: (receipt: Receipt) => Promise<void>;
  isOver: () => boolean;
  /** Cuts the connection: the network hears nothing of a receipt that is not on disk. */
  broken: () => void;
  runtime: Pick<Runtime, "clock" | "log">;
}

/** Taking the lock of receipts before the library does makes it wait with its ack for our commit (promise 4). */
export function takeReceipts({ socket, creds, receive, isOver, broken, runtime }: ReceiptsOptions): void {
  const { clock, log } = runtime;
  socket.ws.prependListener("CB:receipt", (stanza: BinaryNode) => {
    const receipts = creds.me ? receiptsOf(stanza, ownJids(creds), clock.now()) : [];
    if (receipts.length === 0 || isOver()) return;
    // Not in the lock: receipts that come together are to be kept together.
    const kept = Promise.all(receipts.map((receipt) => receive(receipt)));
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

/** What a receipt stanza says of messages that the line sent. Empty when it is about anything else. */
export function receiptsOf(stanza: BinaryNode, me: OwnJids, now: number): Receipt[] {
  const { from, participant, recipient, type = "", t } = stanza.attrs;
  const status = STATUS.get(type);
  // With a recipient it comes from another device of the line's owner, about what that device did.
  if (!from || !status || recipient) return [];
  const entries = isOfMany(from) && !participant ? entriesOfMany(stanza) : entriesOfOne(stanza, participant ?? from);
  // One that is no key to look for would lose all receipts that are kept with it.
  const ofMessages = entries.filter(({ networkId, by }) => networkId.length <= LONGEST_ID && !isOwn(by, me));
  return ofMessages.map(({ networkId, by, at = t }) => ({
    networkId,
    chat: jidNormalizedUser(from),
    participant: isOfMany(from) ? jidNormalizedUser(by) : null,
    status,
    at: timeOf(at) ?? now,
  }));
}

/** Unix ms; null for what is no time: it would lose all receipts that are kept with it. */
function timeOf(seconds: string | undefined): number | null {
  return seconds !== undefined && /^\d{1,12}$/.test(seconds) ? Number(seconds) * 1000 : null;
}

/** One message and one person of a receipt; `at` in seconds, where it differs from the stanza's. */
interface ReceiptEntry {
  networkId: string;
  by: string;
  at?: string;
}

/** `<receipt id [participant]>[<list><item id/>…</list>]`: one person, one message or more. */
function entriesOfOne({ attrs, content }: BinaryNode, by: string): ReceiptEntry[] {
  const more = Array.isArray(content) ? getBinaryNodeChildren(content[0], "item") : [];
  return [attrs.id, ...more.map((item) => item.attrs.id)].flatMap((networkId) => networkId ? [{ networkId, by }] : []);
}

/** `<receipt><participants key=MESSAGE><user jid t/>…</participants>…`: the stanza's own id is no message's. */
function entriesOfMany(stanza: BinaryNode): ReceiptEntry[] {
  return getBinaryNodeChildren(stanza, "participants").flatMap((participants) =>
    getBinaryNodeChildren(participants, "user").flatMap(({ attrs: { jid, t } }) => {
      const networkId = participants.attrs.key;
      return networkId && jid ? [{ networkId, by: jid, ...(t ? { at: t } : {}) }] : [];
    })
  );
}

function isOfMany(chat: string): boolean {
  return isJidGroup(chat) === true || isJidBroadcast(chat) === true;
}
