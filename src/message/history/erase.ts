/**
 * Erases a person from an account's messages. A message to the person stays as an empty record, so that all counts stay
 * right: with its times and status, but without recipient, content and network id. In messages to others, the person's
 * name and number are redacted.
 */
import { deleteKeys } from "../../store/delete_range.ts";
import { Change, type Key, type Kv, retryOnConflict } from "../../store/kv.ts";
import type { Traces } from "../../whatsapp/person.ts";
import { isAnswered, type OutgoingContent } from "../content.ts";
import { hasEnded, isOfMany, type Message } from "../message.ts";
import { messageKeys } from "../rows.ts";
import { makeFilterIndex } from "./filter_index.ts";
import { ledgerOf, messageIds, neighbours, sequence } from "./ledger.ts";
import { containerOf, rowAbove } from "./number_set.ts";

/** Messages read per step, and messages rewritten per commit, which needs a check for each. */
const READ_AT_ONCE = 100;
const REWRITTEN_AT_ONCE = 8;

interface ErasedMessages {
  change: Change;
  /** The rewritten messages as they were before, with the content that the change removes. */
  rewritten: Message[];
  /** How many of them were sent to the person. */
  emptied: number;
  /** Ids of messages that have not ended yet. */
  waiting: string[];
  /** The last history number that was checked; null at the end. */
  next: number | null;
}

/** Builds the next step of an erasure, for messages with history numbers above `after` and up to `upTo`. */
export async function eraseMessages(
  kv: Kv,
  accountId: string,
  { traces, after, upTo, now }: { traces: Traces; after: number; upTo: number; now: number },
): Promise<ErasedMessages> {
  const ledger = await ledgerOf(kv, accountId);
  const last = Math.min(after + READ_AT_ONCE, upTo);
  const messages = await neighbours(kv, await messageIds(kv, { accountId, ledger }, sequence(after + 1, last)));
  const erased: ErasedMessages = {
    change: new Change(),
    rewritten: [],
    emptied: 0,
    waiting: [],
    next: last < upTo ? last : null,
  };
  for (const { id, historyNumber } of messages) {
    const slot = await kv.get(messageKeys.message(id));
    const message = slot.value;
    if (!message || message.erasedAt !== undefined) continue;
    await forgetWhoAnswered(kv, message, traces);
    const isTheirs = traces.isOf(message.to);
    const { to, content, manner, error } = message;
    if (!isTheirs && !traces.isIn([to, content, manner, error])) continue;
    if (!hasEnded(message)) {
      erased.waiting.push(id);
      continue;
    }
    const { sessionId, networkId } = message;
    erased.change.check(slot).set(slot.key, isTheirs ? emptied(message, now) : traces.redact(message));
    erased.rewritten.push(message);
    if (isTheirs) {
      erased.emptied++;
      erased.change.delete(messageKeys.messageOfNetworkId(sessionId, networkId));
      for (const status of ["delivered", "read"] as const) erased.change.delete(messageKeys.receipt(id, status, ""));
    }
    if (erased.rewritten.length === REWRITTEN_AT_ONCE) return { ...erased, next: historyNumber };
  }
  return erased;
}

/** Deletes the person's votes in a poll, and receipts in a group. */
async function forgetWhoAnswered(kv: Kv, { id, to, content }: Message, traces: Traces): Promise<void> {
  if (!isOfMany(to) && !isAnswered(content)) return;
  const theirs: Key[] = [];
  for (const prefix of [messageKeys.receiptsOf(id), messageKeys.votesOf(id)]) {
    for await (const { key } of kv.list<unknown>({ prefix })) if (traces.isOf(String(key.at(-1)))) theirs.push(key);
  }
  await deleteKeys(kv, theirs);
}

function emptied({ manner: _, ...message }: Message, now: number): Message {
  return { ...message, to: "", networkId: "", content: blank(message.content), error: null, erasedAt: now };
}

/**
 * Returns the content with empty values. Its kind stays, which the history counts, and so does the kind
 * of what it forwards or posts.
 */
function blank(content: OutgoingContent): OutgoingContent {
  return JSON.parse(JSON.stringify(content), (name, value) => {
    if (name === "kind" || name === "of") return value;
    return typeof value === "string" ? "" : typeof value === "number" ? 0 : value;
  });
}

/**
 * Removes messages to these chats, up to a history number, from the recipient index.
 * `eraseMessages` empties the messages.
 */
export async function unindexChats(
  kv: Kv,
  accountId: string,
  { chats, upTo }: { chats: readonly string[]; upTo: number },
): Promise<void> {
  await makeFilterIndex(kv).catchUp(accountId);
  for (let container = 0; container <= containerOf(Math.max(1, upTo)); container++) {
    for (const chat of chats) {
      await retryOnConflict(kv, async () => {
        // The index checks the mark when it adds messages, so a concurrent addition conflicts and is tried again.
        const [mark, row] = await Promise.all([
          kv.get(messageKeys.historyIndexed(accountId)),
          kv.get(messageKeys.historyNumbers(accountId, container, "recipient", chat)),
        ]);
        const change = new Change();
        if (row.value === null) return { change, result: null };
        const left = rowAbove(row.value, container, upTo);
        change.check(mark).set(mark.key, mark.value ?? 0).check(row);
        return { change: left ? change.set(row.key, left) : change.delete(row.key), result: null };
      });
    }
  }
}
