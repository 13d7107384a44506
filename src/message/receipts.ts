/**
 * What recipients' phones report about sent messages: receipts, and votes in polls.
 *
 * There is one receipt for "delivered" and one for "read", in a group per participant. Each is reported as
 * `message.status` in the commit that keeps it (promise 4).
 */
import type { EventBody } from "../event/event.ts";
import type { EventLog } from "../event/event_log.ts";
import { type Clock, sleep } from "../runtime.ts";
import { Change, isRow, type KeyOf, type Kv, LINGER_MS, nameOfKey, retryOnConflict, type Slot } from "../store/kv.ts";
import type { Receipt } from "../whatsapp/incoming.ts";
import { hasEnded, isOfMany, type Message } from "./message.ts";
import { messageKeys } from "./rows.ts";

/** Resolves to the current name of a session, for its events; "" if the session is gone. */
export type SessionName = (sessionId: string) => Promise<string>;

/** The content of a receipt, without the message that it is about. */
type Said = Pick<Receipt, "status" | "participant" | "at">;

/** Returns whether a receipt proves that the server has the message, even if no ack came. */
export function isProved(message: Message): boolean {
  return message.deliveredAt !== null;
}

/** Limits per commit: each receipt has a row and an event, and each message is checked and rewritten once. */
const RECEIPTS_A_COMMIT = 150;
const MESSAGES_A_COMMIT = 8;

/** Returns how many of these receipts, oldest first, one call of `keepReceipts` may take. */
export function receiptsOfOneCommit(receipts: readonly Receipt[]): number {
  const messages = new Set<string>();
  const end = receipts.findIndex(({ networkId }) => messages.add(networkId).size > MESSAGES_A_COMMIT);
  return Math.min(end < 0 ? receipts.length : end, RECEIPTS_A_COMMIT);
}

/**
 * Keeps receipts of a line, in one commit. A receipt that arrives before our own commit of `sent` is reported by that
 * commit. Repeated receipts, and "delivered" after "read", are dropped. In a group the message's own times are those of
 * the first participant. Resolves to a boolean for each receipt: true if its message is still queued, because the
 * receipt proves that it need not be sent again.
 */
export async function keepReceipts(
  { kv, clock, events, sessionName }: { kv: Kv; clock: Clock; events: EventLog; sessionName: SessionName },
  lineId: string,
  receipts: readonly Receipt[],
): Promise<boolean[]> {
  const sent = await kv.getMany(receipts.map(({ networkId }) => messageKeys.messageOfNetworkId(lineId, networkId)));
  const byMessage = Map.groupBy(
    // A receipt without a message is for one that the owner's phone sent.
    receipts.flatMap((receipt, i) => sent[i]!.value === null ? [] : [{ receipt, messageId: sent[i]!.value }]),
    ({ messageId }) => messageId,
  );
  if (byMessage.size === 0) return receipts.map(() => false);
  const messages = await retryOnConflict(kv, async () => {
    const change = new Change();
    const result: Message[] = [];
    const name = await sessionName(lineId);
    for (const [messageId, said] of byMessage) {
      const { slot, news } = await newsOf(kv, messageId, said.map(({ receipt }) => receipt));
      if (!isRow(slot) || news.length === 0) continue;
      let next = slot.value;
      for (const { receipt, key } of news) {
        // The network reports whole seconds of its own clock: do not show a delivery before the send.
        const at = Math.max(receipt.at, next.sentAt ?? next.createdAt);
        next = {
          ...next,
          deliveredAt: next.deliveredAt ?? at,
          readAt: receipt.status === "read" ? next.readAt ?? at : next.readAt,
        };
        if (isOfMany(next.to) || !hasEnded(next)) change.set(key, at);
        if (!hasEnded(next)) continue;
        const { accountId } = next;
        const body = statusBody(next, { ...receipt, at });
        events.append(change, { accountId, sessionId: lineId, sessionName: name, ...body });
      }
      // Always rewritten, so that the commit of `sent` conflicts and its `earlyReceipts` do not miss a receipt.
      change.check(slot).set(slot.key, next);
      result.push(next);
    }
    return { change, result, lingerUntil: sleep(clock, LINGER_MS) };
  });
  for (const accountId of new Set(messages.map((message) => message.accountId))) events.committed(accountId);
  const waiting = new Set(messages.filter(({ status }) => status === "queued").map(({ networkId }) => networkId));
  return receipts.map(({ networkId }) => waiting.has(networkId));
}

/**
 * Returns the message, and the receipts that are new, each with the key of its row. In a 1:1 chat the message's own
 * times show which receipts are known, so only early receipts have rows.
 */
async function newsOf(
  kv: Kv,
  messageId: string,
  receipts: readonly Receipt[],
): Promise<{ slot: Slot<Message>; news: { receipt: Receipt; key: KeyOf<number> }[] }> {
  const keyOf = ({ participant }: Receipt, status: Receipt["status"]) =>
    messageKeys.receipt(messageId, status, participant ?? "");
  const slot = await kv.get(messageKeys.message(messageId));
  const said = new Set<string>();
  if (slot.value && isProved(slot.value)) {
    const keys = receipts.flatMap((receipt) => [keyOf(receipt, "read"), keyOf(receipt, "delivered")]);
    const { to, readAt } = slot.value;
    const rows = isOfMany(to)
      ? (await kv.getMany<unknown>(keys)).filter(isRow)
      : keys.map((key) => ({ key })).filter(({ key }) => key[2] === "delivered" || readAt !== null);
    for (const { key } of rows) said.add(nameOfKey(key));
  }
  const news = receipts.flatMap((receipt) => {
    const key = keyOf(receipt, receipt.status);
    if (said.has(nameOfKey(key)) || said.has(nameOfKey(keyOf(receipt, "read")))) return [];
    said.add(nameOfKey(key));
    return [{ receipt, key }];
  });
  return { slot, news };
}

/** Returns the receipts that came before the message was `sent`, oldest first. */
export async function earlyReceipts(kv: Kv, message: Message): Promise<Said[]> {
  const said: Said[] = [];
  if (!isProved(message)) return said;
  for await (const row of kv.list({ prefix: messageKeys.receiptsOf(message.id) })) {
    const [, , status, participant] = row.key.map(String);
    said.push({ status: status === "read" ? "read" : "delivered", participant: participant || null, at: row.value });
  }
  return said.sort((a, b) => a.at - b.at || (a.status < b.status ? -1 : 1));
}

/** Returns the event that reports a receipt. */
export function statusBody(message: Message, { status, participant, at }: Said): EventBody {
  const { id: messageId, networkId, manner } = message;
  return {
    event: "message.status",
    data: { messageId, networkId, status, participant, at: new Date(at).toISOString(), ...taggedWith(manner?.tags) },
  };
}

/** Returns the tags as events carry them: present only if there are any. */
export function taggedWith(tags: readonly string[] | undefined): { tags?: readonly string[] } {
  return tags ? { tags } : {};
}

interface Vote {
  messageId: string;
  /** The voter's digits, if the network revealed them. */
  number: string | null;
  jid: string;
  /** Names of the chosen options; an empty list withdraws an earlier choice. */
  options: readonly string[];
}

/** Adds a vote to the change, replacing the person's last one. Votes of a chat arrive in order. */
export function keepVote(change: Change, { messageId, number, jid, options }: Vote): void {
  change.set(messageKeys.vote(messageId, number ?? jid), [...options]);
  // A choice made before the number was known is stored under the JID.
  if (number !== null && number !== jid) change.delete(messageKeys.vote(messageId, jid));
}

interface PollTally {
  /** Number of people with a current choice. */
  voters: number;
  /** In the order of the poll. */
  options: { name: string; votes: number }[];
}

/** Resolves to the tally of a poll; null for any other message. Throws StoreError. */
type TallyOf = (message: Message) => Promise<PollTally | null>;

export function makeTallyOf(kv: Kv): TallyOf {
  return async ({ id, content }) => {
    if (content.kind !== "poll") return null;
    const votes = new Map(content.options.map((name) => [name, 0]));
    let voters = 0;
    for await (const { value } of kv.list({ prefix: messageKeys.votesOf(id) })) {
      if (value.length > 0) voters++;
      for (const name of value) votes.set(name, (votes.get(name) ?? 0) + 1);
    }
    return { voters, options: content.options.map((name) => ({ name, votes: votes.get(name)! })) };
  };
}
