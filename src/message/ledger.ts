/**
 * The ledger of an account: the one row that every accept checks and rewrites. It holds what must be exact and in
 * order over concurrent accepts: the quota's counts and the last history number. History numbers are dense from 1, and
 * the ids behind them lie in blocks of 32, so that history costs an accept no row of its own but one in 32.
 */
import { NO_USAGE, type Usage } from "../account/quota.ts";
import { keys } from "../store/keys.ts";
import type { Change, Kv } from "../store/kv.ts";

export interface Ledger {
  usage: Usage;
  /** How many messages the account has sent: the last history number. */
  messages: number;
  /** Ids of the messages after the last full block, oldest first. */
  openBlock: string[];
}

/** Messages whose ids share a row, and whose statuses share a counter (`status_index.ts`). */
export const BLOCK_SIZE = 32;

export const EMPTY_LEDGER: Ledger = { usage: NO_USAGE, messages: 0, openBlock: [] };

/** Which block holds the history number. */
export function blockOf(historyNumber: number): number {
  return Math.floor((historyNumber - 1) / BLOCK_SIZE);
}

/**
 * The ledger after messages with these ids, charged as `usage`; adds the blocks that they fill, and the day if they
 * are its first, to the change. The caller sets the ledger's row and checks it.
 */
export function extendLedger(
  change: Change,
  before: { accountId: string; ledger: Ledger },
  added: { messageIds: readonly string[]; usage: Usage },
): Ledger {
  const { accountId, ledger } = before;
  if (added.usage.day !== ledger.usage.day) {
    change.set(keys.historyDay(accountId, added.usage.day), ledger.messages + 1);
  }
  const open = [...ledger.openBlock, ...added.messageIds];
  let block = blockOf(ledger.messages + 1);
  for (; open.length >= BLOCK_SIZE; block++) {
    change.set(keys.historyBlock(accountId, block), open.splice(0, BLOCK_SIZE));
  }
  return { usage: added.usage, messages: ledger.messages + added.messageIds.length, openBlock: open };
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
  const slots = await kv.getMany(blocks.map((block) => keys.historyBlock(accountId, block)));
  const idsOf = new Map(slots.map((slot, i) => [blocks[i], slot.value]));
  return numbers.map((number) =>
    number >= firstOpen ? ledger.openBlock[number - firstOpen] : idsOf.get(blockOf(number))?.[(number - 1) % BLOCK_SIZE]
  ).filter((id) => id !== undefined);
}
