/**
 * The ledger of an account: the one row that every accept checks and rewrites. It holds what must be exact and ordered
 * across concurrent accepts: the quota's counts and the last history number. History numbers count from 1 without gaps.
 * Their message ids are stored in blocks of 30, so that only one message in 30 costs a row for the history.
 */
import { NO_USAGE, type Usage } from "../../account/quota.ts";
import { notFound } from "../../errors.ts";
import { type Ledger, messageKeys } from "../rows.ts";
import { type Change, isRow, type Kv, type Row } from "../../store/kv.ts";
import type { Message } from "../message.ts";

/**
 * Messages whose ids share a row, and whose statuses share a counter (`status_index.ts`). At 2 bits each they take 60
 * bits, which stay clear of the sign bit, whatever differences a group commit sums up.
 */
export const BLOCK_SIZE = 30;

export const EMPTY_LEDGER: Ledger = { usage: NO_USAGE, messages: 0, lastPosition: 0, openBlock: [] };

/** Reads the account's ledger; returns an empty one if the account has none yet. */
export async function ledgerOf(kv: Kv, accountId: string): Promise<Ledger> {
  return (await kv.get(messageKeys.ledger(accountId))).value ?? EMPTY_LEDGER;
}

/** Returns the integers from `first` to `last`; none if `last` is before `first`. */
export function sequence(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
}

/** Returns the block that holds the history number. */
function blockOf(historyNumber: number): number {
  return Math.floor((historyNumber - 1) / BLOCK_SIZE);
}

/**
 * Returns the ledger after these messages, with `usage` as the quota's counts. Adds the blocks that the messages fill,
 * and the day if they are its first, to the change. The caller checks and sets the ledger's row.
 */
export function extendLedger(
  change: Change,
  before: { accountId: string; ledger: Ledger },
  added: { messages: readonly Message[]; usage: Usage },
): Ledger {
  const { accountId, ledger } = before;
  const { messages, usage } = added;
  // If the clock was set back, the day may already have a row. The row with `+` sorts after it,
  // and serves if there is none.
  const day = usage.day < ledger.usage.day ? `${usage.day}+` : usage.day;
  if (day !== ledger.usage.day) change.set(messageKeys.historyDay(accountId, day), ledger.messages + 1);
  const open = [...ledger.openBlock, ...messages.map((message) => message.id)];
  let block = blockOf(ledger.messages + 1);
  for (; open.length >= BLOCK_SIZE; block++) {
    change.set(messageKeys.historyBlock(accountId, block), open.splice(0, BLOCK_SIZE));
  }
  return {
    ...ledger,
    usage,
    messages: ledger.messages + messages.length,
    lastPosition: lastPositionOf(ledger, messages),
    openBlock: open,
  };
}

/** Returns the last assigned position after these messages. Scheduled ones have their time's, and keep theirs as `order`. */
export function lastPositionOf({ lastPosition }: Pick<Ledger, "lastPosition">, messages: readonly Message[]): number {
  const assigned = messages.map(({ sendAt, position, order = 0 }) => sendAt === null ? position : order);
  return Math.max(lastPosition, ...assigned);
}

/**
 * Returns the ids of the messages with these history numbers, in the same order. No number
 * may exceed `ledger.messages`.
 */
export async function messageIds(
  kv: Kv,
  account: { accountId: string; ledger: Ledger },
  numbers: readonly number[],
): Promise<string[]> {
  const { accountId, ledger } = account;
  const firstOpen = ledger.messages - ledger.openBlock.length + 1;
  const blocks = [...new Set(numbers.filter((number) => number < firstOpen).map(blockOf))];
  const slots = await kv.getMany(blocks.map((block) => messageKeys.historyBlock(accountId, block)));
  const idsOf = new Map(slots.map((slot, i) => [blocks[i], slot.value]));
  return numbers.map((number) =>
    number >= firstOpen ? ledger.openBlock[number - firstOpen] : idsOf.get(blockOf(number))?.[(number - 1) % BLOCK_SIZE]
  ).filter((id) => id !== undefined);
}

/** Returns the account's message. Throws Problem not_found, also for another account's message. */
export async function ownMessage(kv: Kv, accountId: string, messageId: string): Promise<Row<Message>> {
  const slot = await kv.get(messageKeys.message(messageId));
  if (!isRow(slot) || slot.value.accountId !== accountId) throw notFound("message");
  return slot;
}

/** Returns the messages with these ids that exist, in the same order. */
export async function messagesOf(kv: Kv, ids: readonly string[]): Promise<Message[]> {
  const slots = await kv.getMany(ids.map((id) => messageKeys.message(id)));
  return slots.flatMap((slot) => slot.value ?? []);
}

/**
 * Like `messagesOf`, for messages that were accepted shortly after one another, oldest first: their rows are close to
 * each other, and listing them takes half the time of single reads. Rows of other accounts may lie between them.
 */
export async function neighbours(kv: Kv, ids: readonly string[]): Promise<Message[]> {
  const [oldest, newest] = [ids[0], ids.at(-1)];
  // Ids sort by time, unless the clock was set back between two runs.
  if (oldest === undefined || newest === undefined || oldest > newest) return messagesOf(kv, ids);
  const found = new Map<string, Message | null>(ids.map((id) => [id, null]));
  const range = {
    prefix: messageKeys.messages(),
    start: messageKeys.message(oldest),
    end: messageKeys.message(`${newest}~`),
  };
  for await (const { value } of kv.list(range, { limit: 2 * ids.length })) {
    if (found.has(value.id)) found.set(value.id, value);
  }
  const missed = ids.filter((id) => found.get(id) === null);
  for (const message of await messagesOf(kv, missed)) found.set(message.id, message);
  return [...found.values()].filter((message) => message !== null);
}
