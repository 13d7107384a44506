/**
 * Keys and types of the chats' rows. A chat's messages are rows of their own, by the address that they came by or went
 * to: digits, or a JID of another kind. A person has up to two addresses, number and `@lid`; the chat's record names
 * those that hold messages.
 */
import type { EventData } from "../event/event.ts";
import { key, prefix } from "../store/kv.ts";

/** Emojis by the number of whoever reacted, or the JID if the number is unknown; the line's own by `ME`. */
export type Reactions = Record<string, string>;

/** The line's owner, as the author of a reaction. */
export const ME = "me";

type Received = EventData<"message.received">;

/** A message that the gateway did not send: received, or written on the owner's phone. */
export interface Said extends Pick<Received, "type" | "text" | "media" | "details" | "quoted"> {
  accountId: string;
  /** Its id on the network. */
  id: string;
  /** When it was written, Unix seconds. */
  timestamp: number;
  /** Null: the line's owner. `jid` names a member of a group. */
  author: { number: string | null; name: string | null; jid?: string } | null;
  editedAt?: number;
  deletedAt?: number;
  reactions?: Reactions;
}

/** A message that the gateway sent: everything else is in the message's own row. */
interface Sent {
  messageId: string;
  reactions?: Reactions;
}

export type ChatRow = Said | Sent;

/** Where the record of a chat is; `same`: the address at which the same person's chat is kept. */
export type ChatPlace = Pick<ChatRecord, "last"> & { unread: boolean } | { same: string };

export interface ChatRecord {
  accountId: string;
  /** The address at which it is kept: digits, or a JID of another kind. */
  chat: string;
  /** The addresses that hold its messages. */
  parts: readonly string[];
  number: string | null;
  lid: string | null;
  name: string | null;
  /** As the network told it last, null if it was given up; left out until it does. */
  username?: string | null;
  /** The number of messages received since it was last read or answered. */
  unread: number;
  /** Whether anybody but the line's owner has written. */
  wrote?: boolean;
  /** The order of the newest message: when it was kept, in microseconds, or the one before plus one. */
  last: number;
}

/** Rings when there is more of an account's older data to index. */
export const BACKFILL_TOPIC = "chat_backfill";

/**
 * How far the index of an account's older data is: its messages by history number, newest first, then its events by
 * their order, newest first, and at last what those mark at others, oldest first.
 */
export type Backfill =
  | { step: "sent"; upTo: number }
  | { step: "written"; before: string | null }
  | { step: "marks"; after: string | null };

export const chatKeys = {
  /** The place of a chat, by each of its addresses. */
  place: (lineId: string, address: string) => key<ChatPlace>("chat", lineId, address),
  places: (lineId: string) => prefix<ChatPlace>("chat", lineId),
  allPlaces: () => prefix<ChatPlace>("chat"),
  /** A chat's record, among those with unread messages or those without, by the order of its newest message. */
  record: (lineId: string, unread: boolean, last: number, chat: string) =>
    key<ChatRecord>("chat_record", lineId, unread ? 1 : 0, last, chat),
  records: (lineId: string, unread: boolean) => prefix<ChatRecord>("chat_record", lineId, unread ? 1 : 0),
  recordsOfLine: (lineId: string) => prefix<ChatRecord>("chat_record", lineId),
  /** A message of a chat, by the address and its order. */
  message: (lineId: string, part: string, order: number) => key<ChatRow>("chat_message", lineId, part, order),
  messages: (lineId: string, part: string) => prefix<ChatRow>("chat_message", lineId, part),
  /** Exists until the chats of what an older version wrote are indexed. */
  backfill: (accountId: string) => key<Backfill>("chat_backfill", accountId),
  backfills: () => prefix<Backfill>("chat_backfill"),
  messagesOfLine: (lineId: string) => prefix<ChatRow>("chat_message", lineId),
};

/** Whether somebody other than the line's owner wrote it. */
export function isReceived(row: ChatRow): boolean {
  return !isSent(row) && row.author !== null;
}

export function isSent(row: ChatRow): row is Sent {
  return "messageId" in row;
}
