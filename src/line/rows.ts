/** Keys and types of the rows of lines. */
import type { Kind } from "../cluster/holder.ts";
import type { Line } from "./line.ts";
import type { Pacing } from "./runner/pacing.ts";
import { key, prefix } from "../store/kv.ts";

/**
 * When a message was emitted, Unix ms, with its author if that is not the chat itself: `me`, or a JID in a group. With
 * `reportedAt`: when it was only reported as undecryptable.
 */
export type SeenRow = number | { reportedAt: number; from?: string } | { at: number; from: string };

export const lineKeys = {
  /** A line. Stays after its deletion is requested, until its session has unlinked it. */
  line: (lineId: string) => key<Line>("line", lineId),
  lines: () => prefix<Line>("line"),
  /**
   * An account's lines in the order of creation; the value is the line's id. Removed when its deletion is requested.
   */
  lineOfAccount: (accountId: string, createdAt: number, lineId: string) =>
    key<string>("line_of_account", accountId, createdAt, lineId),
  linesOfAccount: (accountId: string) => prefix<string>("line_of_account", accountId),
  /** The number of the account's lines; every creation checks it in its commit, so that the plan's limit holds. */
  lineCount: (accountId: string) => key<number>("line_count", accountId),
  /** When the line last connected, sent or received, Unix ms. A row of its own, so that it never conflicts. */
  lineUsed: (lineId: string) => key<number>("line_used", lineId),
  /** When the line's last message departed and when the next may, so that the pause survives a restart (promise 2). */
  pacing: (lineId: string) => key<Pacing>("pacing", lineId),
  /** Exists while a file is prepared: how often preparation of this message was begun without coming to an end. */
  preparing: (lineId: string) => key<{ messageId: string; begun: number }>("preparing", lineId),
  /**
   * Progress of an import: the line it created, the number of messages inserted into its queue, whether it is complete.
   */
  imported: (importId: string) => key<{ lineId: string; messages: number; done: boolean }>("imported", importId),
  /** Exists while the owner has paused the line's queue. */
  queuePaused: (lineId: string) => key<true>("queue_paused", lineId),
  /** When a chat last wrote to the line, Unix ms. Kept for three days (`chats.ts`). */
  heard: (lineId: string, chat: string) => key<number>("heard", lineId, chat),
  heardOfLine: (lineId: string) => prefix<number>("heard", lineId),
  allHeard: () => prefix<number>("heard"),
  /**
   * When either side last wrote in the chat, Unix ms; `true` if an older build wrote it. Kept for a year (`chats.ts`).
   */
  knownChat: (lineId: string, chat: string) => key<number | true>("known_chat", lineId, chat),
  knownChatsOfLine: (lineId: string) => prefix<number | true>("known_chat", lineId),
  allKnownChats: () => prefix<number | true>("known_chat"),
  /** An incoming message that was kept, to drop it when it is delivered again (`seen.ts`). */
  seen: (lineId: string, chat: string, networkId: string) => key<SeenRow>("seen", lineId, chat, networkId),
  seenOfChat: (lineId: string, chat: string) => prefix<SeenRow>("seen", lineId, chat),
  /** When the chat was last read through the gateway, Unix ms. Kept a little longer than the chat's seen rows. */
  chatRead: (lineId: string, chat: string) => key<number>("chat_read", lineId, chat),
  chatsRead: (lineId: string) => prefix<number>("chat_read", lineId),
  allChatsRead: () => prefix<number>("chat_read"),
  seenOfLine: (lineId: string) => prefix<SeenRow>("seen", lineId),
  allSeen: () => prefix<SeenRow>("seen"),
};

export const LINE: Kind<Line> = {
  name: "line",
  rows: lineKeys.lines(),
  nameOf: ({ id }) => id,
  keyOf: lineKeys.line,
};
