/** The rows of messages: queue, history, receipts, ledger. */
import type { Usage } from "../account/quota.ts";
import { key, prefix } from "../store/kv.ts";
import type { Message, Priority } from "./message.ts";

/** What a message of the history can be found by. The recipient is its chat (`chatOf`). */
export const FACETS = ["session", "recipient", "type"] as const;
export type Facet = (typeof FACETS)[number];

/** A row of a line's queue or schedule: of a message that is `queued` or `processing`. */
export interface QueueRow {
  messageId: string;
  /** The chat that the message goes to (`chatOf`). */
  chat: string;
  /** The bulk that the message came with; the row counts only once the bulk's own row exists. */
  bulkId: string | null;
}

/** Where a message stands among those of its line and priority: `position` decides, `historyNumber` where two are equal. */
type Place = Pick<Message, "position" | "historyNumber">;

/** Within a priority, in this order (docs/queue.md): chats that wrote lately, new chats that had to wait, all others. */
export const LANES = ["reply", "held", "cold"] as const;
export type Lane = (typeof LANES)[number];

const PRIORITY_ORDER: Readonly<Record<Priority, number>> = { high: 0, normal: 1, low: 2 };

/** A bulk send. Its row is the last that accept writes, so that a crash in the middle leaves none of it (promise 1). */
export interface Bulk {
  accountId: string;
  sessionId: string;
  /** How many messages. */
  total: number;
  /** The history number of its first message; the others follow it. */
  firstHistoryNumber: number;
  createdAt: number;
}

/** A bulk that is staged over several commits. */
export interface StagedBulk {
  /** Its messages have ids from this to that, with no other message between. */
  firstMessageId: string;
  lastMessageId: string;
}

/** The row of an account that every accept checks and rewrites. */
export interface Ledger {
  usage: Usage;
  /** How many messages the account has sent: the last history number. */
  messages: number;
  /**
   * The last position given out in the queues of the account's lines: microseconds since 1970, or one more than the last
   * when the clock does not say more. So positions always grow, and a scheduled message stands where its time says.
   */
  lastPosition: number;
  /** Ids of the messages after the last full block, oldest first. */
  openBlock: string[];
  /** How many numbers the account's list of opt-outs has; absent: none. */
  optOuts?: number;
}

/** Somebody who is never written to again. */
export interface OptOut {
  /** Digits; a JID ending in `@lid` where the network never revealed the number. */
  number: string;
  /** The word that they wrote; null: the owner put them on the list. */
  word: string | null;
  createdAt: number;
  /** The number, and the `@lid` that they wrote from. */
  chats: string[];
}

export const messageKeys = {
  /** A message by its id. */
  message: (messageId: string) => key<Message>("message", messageId),
  messages: () => prefix<Message>("message"),
  /** A line's queue: one row for each message that may leave, in the order of departure. */
  queue: (lineId: string, priority: Priority, lane: Lane, { position, historyNumber }: Place) =>
    key<QueueRow>("queue", lineId, PRIORITY_ORDER[priority], LANES.indexOf(lane), position, historyNumber),
  queues: () => prefix<QueueRow>("queue"),
  queueOfLine: (lineId: string) => prefix<QueueRow>("queue", lineId),
  queueLane: (lineId: string, priority: Priority, lane: Lane) =>
    prefix<QueueRow>("queue", lineId, PRIORITY_ORDER[priority], LANES.indexOf(lane)),
  /** The same messages by chat, in the order in which the chat gets them. */
  chatQueue: (lineId: string, chat: string, { position, historyNumber }: Place) =>
    key<QueueRow>("chat_queue", lineId, chat, position, historyNumber),
  queueOfChat: (lineId: string, chat: string) => prefix<QueueRow>("chat_queue", lineId, chat),
  /** Messages of a line that may not leave before a time (Unix ms). */
  schedule: (lineId: string, sendAt: number, historyNumber: number) =>
    key<QueueRow>("schedule", lineId, sendAt, historyNumber),
  schedules: () => prefix<QueueRow>("schedule"),
  scheduleOfLine: (lineId: string) => prefix<QueueRow>("schedule", lineId),
  /** Ids of messages that may wait until this time (Unix ms), the first of them in the key; they may have ended since. */
  expiry: (expiresAt: number, firstMessageId: string) => key<string[]>("expiry", expiresAt, firstMessageId),
  expiries: () => prefix<string[]>("expiry"),
  /** A bulk: written last of its rows; without it the queue rows that name it do not count (all or none). */
  bulk: (bulkId: string) => key<Bulk>("bulk", bulkId),
  /** That the bulk is the account's; ids sort by time. */
  bulkOfAccount: (accountId: string, bulkId: string) => key<true>("bulk_of_account", accountId, bulkId),
  bulksOfAccount: (accountId: string) => prefix<true>("bulk_of_account", accountId),
  /** How many messages of the bulk have ended so. */
  bulkCount: (bulkId: string, status: "sent" | "failed") => key<bigint>("bulk_count", bulkId, status),
  /** A bulk of which not every message has ended, or whose end was not reported yet. */
  openBulk: (bulkId: string) => key<true>("open_bulk", bulkId),
  openBulks: () => prefix<true>("open_bulk"),
  /** What was cancelled of an account's messages of a UTC day and has yet to be given back to its quota. */
  refund: (accountId: string, day: string) => key<bigint>("refund", accountId, day),
  refunds: (accountId: string) => prefix<bigint>("refund", accountId),
  allRefunds: () => prefix<bigint>("refund"),
  /** The gateway's message id of a network id, from the first departure: receipts name only that. */
  messageOfNetworkId: (lineId: string, networkId: string) => key<string>("message_of_network_id", lineId, networkId),
  networkIdsOfLine: (lineId: string) => prefix<string>("message_of_network_id", lineId),
  /** What a participant's receipt said, and when: each is reported once. The participant is "" in a 1:1 chat. */
  receipt: (messageId: string, status: "delivered" | "read", participant: string) =>
    key<number>("receipt", messageId, status, participant),
  receiptsOf: (messageId: string) => prefix<number>("receipt", messageId),
  /** An account's list of opt-outs. */
  optOut: (accountId: string, number: string) => key<OptOut>("opt_out", accountId, number),
  optOuts: (accountId: string) => prefix<OptOut>("opt_out", accountId),
  /** The number on that list that is written to in this chat. */
  optedOutChat: (accountId: string, chat: string) => key<string>("opted_out_chat", accountId, chat),
  optedOutChats: (accountId: string) => prefix<string>("opted_out_chat", accountId),
  /** Names of the options that somebody chose last in a poll; `voter` is a number, or a JID without one. */
  vote: (messageId: string, voter: string) => key<string[]>("vote", messageId, voter),
  votesOf: (messageId: string) => prefix<string[]>("vote", messageId),
  /** An account's ledger: quota counts and the end of its history, rewritten by every accept. */
  ledger: (accountId: string) => key<Ledger>("ledger", accountId),
  ledgers: () => prefix<Ledger>("ledger"),
  /** Message ids of 30 consecutive history numbers; written when they are full. */
  historyBlock: (accountId: string, block: number) => key<string[]>("history_block", accountId, block),
  historyBlocks: (accountId: string) => prefix<string[]>("history_block", accountId),
  /** The first history number of a UTC day (`YYYY-MM-DD`) on which anything was accepted; with `+` where a clock was set back. */
  historyDay: (accountId: string, day: string) => key<number>("history_day", accountId, day),
  historyDays: (accountId: string) => prefix<number>("history_day", accountId),
  /** Packed statuses (level 0) and counts of them (above), see `history/status_index.ts`. */
  statusCounts: (accountId: string, level: number, index: number) =>
    key<bigint>("status_counts", accountId, level, index),
  statusCountsOf: (accountId: string, level: number) => prefix<bigint>("status_counts", accountId, level),
  /** History numbers of the messages with this value, as `history/number_set.ts` encodes a container of them. */
  historyNumbers: (accountId: string, container: number, facet: Facet, value: string) =>
    key<Uint8Array>("history_numbers", accountId, container, facet, value),
  historyNumbersOf: (accountId: string) => prefix<Uint8Array>("history_numbers", accountId),
  /** Where the rows of a container begin. */
  historyContainer: (accountId: string, container: number) => key<Uint8Array>("history_numbers", accountId, container),
  /** Up to which history number messages were removed, see `history/retention.ts`. */
  historyFloor: (accountId: string) => key<number>("history_floor", accountId),
  /** Up to which history number these rows have every message. */
  historyIndexed: (accountId: string) => key<number>("history_indexed", accountId),
  /** A bulk that is staged over several commits; gone once the bulk's own row is there. */
  stagedBulk: (bulkId: string) => key<StagedBulk>("staged_bulk", bulkId),
  stagedBulks: () => prefix<StagedBulk>("staged_bulk"),
};
