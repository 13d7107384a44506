/**
 * The history of an account: any page of a million messages, and totals, without reading them all.
 * Indexes and counters by account, day and status change in the commits that change the messages.
 */
import { notFound } from "../errors.ts";
import { keys } from "../store/keys.ts";
import type { Change, Kv } from "../store/kv.ts";
import { EMPTY_LEDGER, messageIds } from "./ledger.ts";
import type { Message, MessageStatus } from "./message.ts";
import { EndedStretches, moveStatus, StatusReader } from "./status_index.ts";

export interface HistoryQuery {
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

/** Adds to the change what the indexes need when a message takes its first status or moves to another. */
export type RecordStatus = (change: Change, message: Message, previous: MessageStatus | null) => void;

export const recordStatus: RecordStatus = (change, message, previous) => {
  // A new message is `queued`, which is what the index takes every message for.
  moveStatus(change, message, { from: previous ?? "queued", to: message.status });
};

export function makeHistory(kv: Kv): History {
  const ended = new EndedStretches();

  /** How many messages were accepted before the first day that sorts at or after `day`; null if there is none. */
  async function acceptedBefore(accountId: string, day: string): Promise<number | null> {
    const range = { prefix: keys.historyDays(accountId), start: keys.historyDay(accountId, day) };
    for await (const first of kv.list(range, { limit: 1 })) return first.value - 1;
    return null;
  }

  return {
    async page(accountId, { page, limit, status, from, to }) {
      const [slot, beforeFrom, throughTo] = await Promise.all([
        kv.get(keys.ledger(accountId)),
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
      const slots = await kv.getMany(ids.map((id) => keys.message(id)));
      const messages = slots.map((slot) => slot.value)
        // One may have moved on since the index was read.
        .filter((message): message is Message => message !== null && (status === null || message.status === status));
      return { messages, total: Math.max(0, newest - oldest) };
    },

    async get(accountId, messageId) {
      const { value } = await kv.get(keys.message(messageId));
      if (value === null || value.accountId !== accountId) throw notFound("message");
      return value;
    },
  };
}

function sequence(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
}
