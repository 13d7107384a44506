/**
 * The history of an account: any page of a million messages, and totals, without reading them all.
 * Indexes and counters by account, day and status change in the commits that change the messages.
 */
import { notFound } from "../../errors.ts";
import { messageKeys } from "../rows.ts";
import type { Change, Kv } from "../../store/kv.ts";
import { EMPTY_LEDGER, messageIds } from "./ledger.ts";
import type { Message, MessageStatus } from "../message.ts";
import { EndedStretches, moveStatus, StatusReader } from "./status_index.ts";

interface HistoryQuery {
  page: number;
  limit: number;
  status: MessageStatus | null;
  /** Whole UTC days, `YYYY-MM-DD`, both included. */
  from: string | null;
  to: string | null;
}

export interface History {
  /** Newest first. */
  page(accountId: string, query: HistoryQuery): Promise<{ messages: Message[]; total: number }>;
  /** Throws Problem not_found, also for another account's message. */
  get(accountId: string, messageId: string): Promise<Message>;
}

/** Adds to the change what the indexes need when a message moves from one status to another. */
export type RecordStatus = (change: Change, message: Message, from: MessageStatus) => void;

export const recordStatus: RecordStatus = (change, message, from) =>
  moveStatus(change, message, { from, to: message.status });

export function makeHistory(kv: Kv): History {
  const ended = new EndedStretches();

  /** How many messages were accepted before the first day that sorts at or after `day`; null if there is none. */
  async function acceptedBefore(accountId: string, day: string): Promise<number | null> {
    const range = { prefix: messageKeys.historyDays(accountId), start: messageKeys.historyDay(accountId, day) };
    for await (const first of kv.list(range, { limit: 1 })) return first.value - 1;
    return null;
  }

  async function each(ids: readonly string[]): Promise<Message[]> {
    const slots = await kv.getMany(ids.map((id) => messageKeys.message(id)));
    return slots.flatMap((slot) => slot.value ?? []);
  }

  /**
   * As `each`, for messages that were accepted one soon after the other: their rows are near each other, and one list
   * of them costs half of what single keys cost. Rows of other accounts may lie between.
   */
  async function neighbours(newestFirst: readonly string[]): Promise<Message[]> {
    const [newest, oldest] = [newestFirst[0]!, newestFirst.at(-1)!];
    // Ids sort by time, unless the clock was set back between two runs.
    if (oldest > newest) return each(newestFirst);
    const wanted = new Map<string, Message | null>(newestFirst.map((id) => [id, null]));
    const range = {
      prefix: messageKeys.messages(),
      start: messageKeys.message(oldest),
      end: messageKeys.message(`${newest}~`),
    };
    const rows = kv.list(range, { limit: 2 * newestFirst.length });
    for await (const { value } of rows) if (wanted.has(value.id)) wanted.set(value.id, value);
    const missed = newestFirst.filter((id) => wanted.get(id) === null);
    for (const message of await each(missed)) wanted.set(message.id, message);
    return [...wanted.values()].filter((message) => message !== null);
  }

  return {
    async page(accountId, { page, limit, status, from, to }) {
      const [slot, beforeFrom, throughTo] = await Promise.all([
        kv.get(messageKeys.ledger(accountId)),
        from === null ? 0 : acceptedBefore(accountId, from),
        // "~" sorts after every character of a day: the first day after `to`.
        to === null ? null : acceptedBefore(accountId, `${to}~`),
      ]);
      const ledger = slot.value ?? EMPTY_LEDGER;
      const before = Math.min(beforeFrom ?? ledger.messages, ledger.messages);
      const end = Math.min(throughTo ?? ledger.messages, ledger.messages);
      const index = status && new StatusReader({ kv, ended }, { accountId, status, messages: ledger.messages });
      // Without a status, a message's rank among all is its history number.
      const [oldest, newest] = index ? await Promise.all([index.rank(before), index.rank(end)]) : [before, end];
      const last = newest - (page - 1) * limit;
      const first = Math.max(oldest + 1, last - limit + 1);
      const numbers = index ? await index.select(first, last) : sequence(first, last);

      const ids = await messageIds(kv, { accountId, ledger }, numbers.reverse());
      const isDense = numbers.length > 0 && numbers[0]! - numbers.at(-1)! < 2 * numbers.length;
      const found = isDense ? await neighbours(ids) : await each(ids);
      // One may have moved on since the index was read.
      const messages = found.filter((message) => status === null || message.status === status);
      return { messages, total: Math.max(0, newest - oldest) };
    },

    async get(accountId, messageId) {
      const { value } = await kv.get(messageKeys.message(messageId));
      if (value === null || value.accountId !== accountId) throw notFound("message");
      return value;
    },
  };
}

function sequence(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
}
