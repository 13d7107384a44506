/** The rows of messages: queue, history, receipts, ledger. */
import type { BulkDraft } from "./bulk_draft.ts";
import type { Ledger } from "./ledger.ts";
import type { Bulk, Message, QueueRow } from "./message.ts";
import { key, prefix } from "../store/kv.ts";

export const messageKeys = {
  /** A message by its id. */
  message: (messageId: string) => key<Message>("message", messageId),
  messages: () => prefix<Message>("message"),
  /** A line's queue: one row for each message that is `queued` or `processing`, in the order of departure. */
  queue: (lineId: string, position: number) => key<QueueRow>("queue", lineId, position),
  queueOfLine: (lineId: string) => prefix<QueueRow>("queue", lineId),
  /** Ids of messages that may wait until this time (Unix ms), the first of them in the key; they may have ended since. */
  expiry: (expiresAt: number, firstMessageId: string) => key<string[]>("expiry", expiresAt, firstMessageId),
  expiries: () => prefix<string[]>("expiry"),
  /** A bulk: written last of its rows; without it the queue rows that name it do not count (all or none). */
  bulk: (bulkId: string) => key<Bulk>("bulk", bulkId),
  /** The gateway's message id of a network id, from the first departure: receipts name only that. */
  messageOfNetworkId: (lineId: string, networkId: string) => key<string>("message_of_network_id", lineId, networkId),
  networkIdsOfLine: (lineId: string) => prefix<string>("message_of_network_id", lineId),
  /** What a participant's receipt said, and when: each is reported once. The participant is "" in a 1:1 chat. */
  receipt: (messageId: string, status: "delivered" | "read", participant: string) =>
    key<number>("receipt", messageId, status, participant),
  receiptsOf: (messageId: string) => prefix<number>("receipt", messageId),
  /** An account's ledger: quota counts and the end of its history, rewritten by every accept. */
  ledger: (accountId: string) => key<Ledger>("ledger", accountId),
  ledgers: () => prefix<Ledger>("ledger"),
  /** Message ids of 30 consecutive history numbers; written when they are full. */
  historyBlock: (accountId: string, block: number) => key<string[]>("history_block", accountId, block),
  /** The first history number of a UTC day (`YYYY-MM-DD`) on which anything was accepted. */
  historyDay: (accountId: string, day: string) => key<number>("history_day", accountId, day),
  historyDays: (accountId: string) => prefix<number>("history_day", accountId),
  /** Packed statuses (level 0) and counts of them (above), see message/status_index.ts. */
  statusCounts: (accountId: string, level: number, index: number) =>
    key<bigint>("status_counts", accountId, level, index),
  statusCountsOf: (accountId: string, level: number) => prefix<bigint>("status_counts", accountId, level),
  /** A bulk that is being written over several commits; gone once the bulk's own row is there. */
  bulkDraft: (bulkId: string) => key<BulkDraft>("bulk_draft", bulkId),
  bulkDrafts: () => prefix<BulkDraft>("bulk_draft"),
};
