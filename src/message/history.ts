/**
 * The history of an account: any page of a million messages, and totals, without reading them all.
 * Indexes and counters by account, day and status change in the commits that change the messages.
 */
import type { Change } from "../store/kv.ts";
import type { Message, MessageStatus } from "./message.ts";

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
