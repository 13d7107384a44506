/**
 * The ledger of an account: the one row that every accept checks and rewrites. It holds what must be exact and in
 * order over concurrent accepts: the quota's counts and the last history number. History numbers are dense from 1, and
 * the ids behind them lie in blocks of 30, so that history costs an accept no row of its own but one in 30.
 */
import { NO_USAGE, type Usage } from "../../account/quota.ts";
import { notFound } from "../../errors.ts";
import { type Ledger, messageKeys } from "../rows.ts";
import { type Change, isRow, type Kv, type Row } from "../../store/kv.ts";
import type { Message } from "../message.ts";

/**
 * Messages whose ids share a row, and whose statuses share a counter (`status_index.ts`): 2 bits each, and 60 bits stay
 * clear of the sign, whatever differences a group commit adds up.
 */
export const BLOCK_SIZE = 30;

export const EMPTY_LEDGER: Ledger = { usage: NO_USAGE, messages: 0, lastPosition: 0, openBlock: [] };

/** The account's ledger as it stands. */
export async function ledgerOf(kv: Kv, accountId: string): Promise<Ledger> {
  return (await kv.get(messageKeys.ledger(accountId))).value ?? EMPTY_LEDGER;
}

/** History numbers from the first to the last; none when the last is before the first. */
export function sequence(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
}

/** Which block holds the history number. */
function blockOf(historyNumber: number): number {
  return Math.floor((historyNumber - 1) / BLOCK_SIZE);
}

/**
 * The ledger after these messages, charged as `usage`; adds the blocks that they fill, and the day if they are its
 * first, to the change. The caller sets the ledger's row and checks it.
 */
export function extendLedger(
  change: Change,
  before: { accountId: string; ledger: Ledger },
  added: { messages: readonly Message[]; usage: Usage },
): Ledger {
  const { accountId, ledger } = before;
  const { messages, usage } = added;
  // Back from a wrong clock the day may have its row already: this one sorts behind it, and is read where there is none.
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

/** The last position given out once these messages, in order, have theirs; a scheduled one takes the place of its time. */
export function lastPositionOf({ lastPosition }: Pick<Ledger, "lastPosition">, messages: readonly Message[]): number {
  const last = messages.findLast(({ sendAt }) => sendAt === null);
  return Math.max(lastPosition, last?.position ?? 0);
}

/** Ids of the messages with these history numbers, in their order; all of them at most `ledger.messages`. */
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

/** The account's message. Throws Problem not_found, also for another account's. */
export async function ownMessage(kv: Kv, accountId: string, messageId: string): Promise<Row<Message>> {
  const slot = await kv.get(messageKeys.message(messageId));
  if (!isRow(slot) || slot.value.accountId !== accountId) throw notFound("message");
  return slot;
}

/** The messages with these ids, in their order, as far as they are there. */
export async function messagesOf(kv: Kv, ids: readonly string[]): Promise<Message[]> {
  const slots = await kv.getMany(ids.map((id) => messageKeys.message(id)));
  return slots.flatMap((slot) => slot.value ?? []);
}

/**
 * As `messagesOf`, for messages that were accepted one soon after the other, oldest first: their rows are near each
 * other, and one list of them costs half of what single keys cost. Rows of other accounts may lie between.
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
