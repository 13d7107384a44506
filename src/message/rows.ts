/** Keys and types of the rows of messages: queue, history, receipts, ledger. */
import type { Usage } from "../account/quota.ts";
import { key, prefix } from "../store/kv.ts";
import type { Message, Priority } from "./message.ts";
import type { TemplateRow, TemplateVersion } from "./templates/template.ts";

/** The properties by which messages of the history can be found. The recipient is the chat (`chatOf`). */
export const FACETS = ["session", "recipient", "type", "tag"] as const;
export type Facet = (typeof FACETS)[number];

/** A row of a line's queue or schedule, for a message that is `queued` or `processing`. */
export interface QueueRow {
  messageId: string;
  /** The chat that the message goes to (`chatOf`). */
  chat: string;
  /** The message's bulk, or null. The row counts only once the bulk's own row exists. */
  bulkId: string | null;
}

/**
 * The place of a message among those of its line and priority: by `position`, and by `order` if that is equal, or by
 * `historyNumber` without one.
 */
type Place = Pick<Message, "position" | "historyNumber" | "order">;

/**
 * The lanes of a priority, in the order of departure (docs/queue.md): chats that wrote lately, new chats
 * that had to wait, all others.
 */
export const LANES = ["reply", "held", "cold"] as const;
export type Lane = (typeof LANES)[number];

const PRIORITY_ORDER: Readonly<Record<Priority, number>> = { high: 0, normal: 1, low: 2 };

/** A bulk send. Its row is written last, so that a crash during the accept leaves no part of it (promise 1). */
export interface Bulk {
  accountId: string;
  sessionId: string;
  /** The number of its messages. */
  total: number;
  /** The history number of the first message; the others follow without gaps. */
  firstHistoryNumber: number;
  createdAt: number;
}

/** A bulk that is staged over several commits. */
export interface StagedBulk {
  /** The range of ids that contains all of the bulk's messages. */
  firstMessageId: string;
  lastMessageId: string;
}

/** The row of an account that every accept checks and rewrites (`history/ledger.ts`). */
export interface Ledger {
  usage: Usage;
  /** The number of messages that the account has sent, which is the last history number. */
  messages: number;
  /**
   * The last position assigned in the queues of the account's lines: the time in microseconds since 1970,
   * or the previous position plus one if that is greater. So positions always grow. A scheduled message
   * gets the position of its time, and this one as its `order`.
   */
  lastPosition: number;
  /** Ids of the messages after the last full block, oldest first. */
  openBlock: string[];
  /** The size of the account's list of opt-outs; absent for none. */
  optOuts?: number;
}

/** A person to whom the account no longer writes. */
export interface OptOut {
  /** Digits, or a JID ending in `@lid` if the network never revealed the number. */
  number: string;
  /** The word that the person wrote; null if the owner added the entry. */
  word: string | null;
  createdAt: number;
  /** All chats of the person: the number, and known `@lid`s. */
  chats: readonly string[];
}

export const messageKeys = {
  /** A message by its id. */
  message: (messageId: string) => key<Message>("message", messageId),
  messages: () => prefix<Message>("message"),
  /** A line's queue: one row per message that may leave, in the order of departure. */
  queue: (lineId: string, priority: Priority, lane: Lane, { position, historyNumber, order = historyNumber }: Place) =>
    key<QueueRow>("queue", lineId, PRIORITY_ORDER[priority], LANES.indexOf(lane), position, order),
  queues: () => prefix<QueueRow>("queue"),
  queueOfLine: (lineId: string) => prefix<QueueRow>("queue", lineId),
  queueLane: (lineId: string, priority: Priority, lane: Lane) =>
    prefix<QueueRow>("queue", lineId, PRIORITY_ORDER[priority], LANES.indexOf(lane)),
  /**
   * The same messages by chat, in the order in which the chat receives them; of those accepted last, the rows may be
   * missing (`queue/chat_order.ts`).
   */
  chatQueue: (lineId: string, chat: string, { position, historyNumber, order = historyNumber }: Place) =>
    key<QueueRow>("chat_queue", lineId, chat, position, order),
  queueOfChat: (lineId: string, chat: string) => prefix<QueueRow>("chat_queue", lineId, chat),
  /** The position up to which no row of the line's `chatQueue` is missing. */
  chatsComplete: (lineId: string) => key<number>("chats_complete", lineId),
  /** A line's scheduled messages, which may not leave before their time, Unix ms. */
  schedule: (lineId: string, sendAt: number, { historyNumber, order = historyNumber }: Omit<Place, "position">) =>
    key<QueueRow>("schedule", lineId, sendAt, order),
  schedules: () => prefix<QueueRow>("schedule"),
  scheduleOfLine: (lineId: string) => prefix<QueueRow>("schedule", lineId),
  /** A message that waits for approval, and is neither in the queue nor in the schedule. */
  proposal: (lineId: string, messageId: string) => key<QueueRow>("proposal", lineId, messageId),
  proposalsOfLine: (lineId: string) => prefix<QueueRow>("proposal", lineId),
  /** A waiting message that is cancelled when its chat writes (`queue_changes.ts`). */
  replyCancels: (lineId: string, chat: string, messageId: string) =>
    key<QueueRow>("reply_cancels", lineId, chat, messageId),
  replyCancelsOnLine: (lineId: string) => prefix<QueueRow>("reply_cancels", lineId),
  replyCancelsOfChat: (lineId: string, chat: string) => prefix<QueueRow>("reply_cancels", lineId, chat),
  /** Ids of choices by chat and time of departure, Unix ms, by which a text finds what it answers (`line/answers.ts`). */
  choicesAsked: (lineId: string, chat: string, at: number, messageId: string) =>
    key<string>("choices_asked", lineId, chat, at, messageId),
  choicesAskedOf: (lineId: string, chat: string) => prefix<string>("choices_asked", lineId, chat),
  choicesAskedOnLine: (lineId: string) => prefix<string>("choices_asked", lineId),
  allChoicesAsked: () => prefix<string>("choices_asked"),
  /** A template by name and language. */
  template: (accountId: string, name: string, language: string) =>
    key<TemplateRow>("template", accountId, name, language),
  templatesNamed: (accountId: string, name: string) => prefix<TemplateRow>("template", accountId, name),
  templates: (accountId: string) => prefix<TemplateRow>("template", accountId),
  /** How many templates the account has ever made; checked by every creation, so that the limit holds. */
  templatesMade: (accountId: string) => key<number>("templates_made", accountId),
  /** The texts of one version of a template. Kept as long as a message may refer to it. */
  templateVersion: (accountId: string, versionId: string) =>
    key<TemplateVersion>("template_version", accountId, versionId),
  templateVersions: (accountId: string) => prefix<TemplateVersion>("template_version", accountId),
  allTemplateVersions: () => prefix<TemplateVersion>("template_version"),
  /**
   * Ids of messages that expire by this time, Unix ms. They may have ended since. `name` is the first id; of a
   * rescheduled message, its id and revision.
   */
  expiry: (expiresAt: number, name: string) => key<string[]>("expiry", expiresAt, name),
  expiries: () => prefix<string[]>("expiry"),
  /** A bulk. Written last of its rows: without it, queue rows that name the bulk do not count (all or none). */
  bulk: (bulkId: string) => key<Bulk>("bulk", bulkId),
  /** Index of an account's bulks; ids sort by time. */
  bulkOfAccount: (accountId: string, bulkId: string) => key<true>("bulk_of_account", accountId, bulkId),
  bulksOfAccount: (accountId: string) => prefix<true>("bulk_of_account", accountId),
  /** The number of messages of the bulk that ended with this status. */
  bulkCount: (bulkId: string, status: "sent" | "failed") => key<bigint>("bulk_count", bulkId, status),
  /** Exists until every message of the bulk has ended and `bulk.finished` is reported. */
  openBulk: (bulkId: string) => key<true>("open_bulk", bulkId),
  openBulks: () => prefix<true>("open_bulk"),
  /** The number of cancelled messages of a UTC day whose quota is still to be refunded. */
  refund: (accountId: string, day: string) => key<bigint>("refund", accountId, day),
  refunds: (accountId: string) => prefix<bigint>("refund", accountId),
  allRefunds: () => prefix<bigint>("refund"),
  /** The gateway's message id for a network id, written at the first departure: receipts only carry the network id. */
  messageOfNetworkId: (lineId: string, networkId: string) => key<string>("message_of_network_id", lineId, networkId),
  networkIdsOfLine: (lineId: string) => prefix<string>("message_of_network_id", lineId),
  /**
   * The time of a participant's receipt, Unix ms, so that each is reported once. The participant is "" in a 1:1 chat.
   */
  receipt: (messageId: string, status: "delivered" | "read", participant: string) =>
    key<number>("receipt", messageId, status, participant),
  receiptsOf: (messageId: string) => prefix<number>("receipt", messageId),
  /** An account's list of opt-outs. */
  optOut: (accountId: string, number: string) => key<OptOut>("opt_out", accountId, number),
  optOuts: (accountId: string) => prefix<OptOut>("opt_out", accountId),
  /** The number of the opt-out that covers this chat. */
  optedOutChat: (accountId: string, chat: string) => key<string>("opted_out_chat", accountId, chat),
  optedOutChats: (accountId: string) => prefix<string>("opted_out_chat", accountId),
  /** Names of the options that a person chose last in a poll. `voter` is the number, or the JID if that is unknown. */
  vote: (messageId: string, voter: string) => key<string[]>("vote", messageId, voter),
  votesOf: (messageId: string) => prefix<string[]>("vote", messageId),
  /** An account's ledger: quota counts and the end of its history. Rewritten by every accept. */
  ledger: (accountId: string) => key<Ledger>("ledger", accountId),
  ledgers: () => prefix<Ledger>("ledger"),
  /** Message ids of 30 consecutive history numbers; written when the block is full. */
  historyBlock: (accountId: string, block: number) => key<string[]>("history_block", accountId, block),
  historyBlocks: (accountId: string) => prefix<string[]>("history_block", accountId),
  /**
   * The first history number of a UTC day (`YYYY-MM-DD`) with accepted messages; with `+` after a clock was set back.
   */
  historyDay: (accountId: string, day: string) => key<number>("history_day", accountId, day),
  historyDays: (accountId: string) => prefix<number>("history_day", accountId),
  /** Packed statuses (level 0) and counts of them (levels above), see `history/status_index.ts`. */
  statusCounts: (accountId: string, level: number, index: number) =>
    key<bigint>("status_counts", accountId, level, index),
  statusCountsOf: (accountId: string, level: number) => prefix<bigint>("status_counts", accountId, level),
  /** History numbers of the messages with this value: one container, as `history/number_set.ts` encodes it. */
  historyNumbers: (accountId: string, container: number, facet: Facet, value: string) =>
    key<Uint8Array>("history_numbers", accountId, container, facet, value),
  historyNumbersOf: (accountId: string) => prefix<Uint8Array>("history_numbers", accountId),
  /** The key at which the rows of a container begin. */
  historyContainer: (accountId: string, container: number) => key<Uint8Array>("history_numbers", accountId, container),
  /** The history number up to which messages were removed, see `history/retention.ts`. */
  historyFloor: (accountId: string) => key<number>("history_floor", accountId),
  /** The history number up to which `historyNumbers` is complete. */
  historyIndexed: (accountId: string) => key<number>("history_indexed", accountId),
  /** A bulk that is staged over several commits; removed when the bulk's own row is written. */
  stagedBulk: (bulkId: string) => key<StagedBulk>("staged_bulk", bulkId),
  stagedBulks: () => prefix<StagedBulk>("staged_bulk"),
};
