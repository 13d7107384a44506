/** The rows of lines. */
import type { Line } from "./line.ts";
import type { Pacing } from "./pacing.ts";
import { key, prefix } from "../store/kv.ts";

/**
 * When the message was emitted, Unix ms, with its author where that is not the chat itself: `me`, or a JID in a group; or
 * when it was only reported as unreadable.
 */
export type SeenRow = number | { reportedAt: number } | { at: number; from: string };

export const lineKeys = {
  /** A line. Stays after its deletion was asked for, until its session has unlinked it. */
  line: (lineId: string) => key<Line>("line", lineId),
  lines: () => prefix<Line>("line"),
  /** An account's lines in the order of creation; the value is the line's id. Gone as soon as its deletion is asked for. */
  lineOfAccount: (accountId: string, createdAt: number, lineId: string) =>
    key<string>("line_of_account", accountId, createdAt, lineId),
  linesOfAccount: (accountId: string) => prefix<string>("line_of_account", accountId),
  /** How many lines the account has: checked by every create, so that the plan's limit holds. */
  lineCount: (accountId: string) => key<number>("line_count", accountId),
  /** When the line last connected, sent or received, Unix ms; beside the line's row, so that it never conflicts. */
  lineUsed: (lineId: string) => key<number>("line_used", lineId),
  /** When the line's last message departed and when the next may: the pause survives a restart (promise 2). */
  pacing: (lineId: string) => key<Pacing>("pacing", lineId),
  /** There while a file of the line is prepared: how often that was begun for this message and did not come to its end. */
  preparing: (lineId: string) => key<{ messageId: string; begun: number }>("preparing", lineId),
  /** What became of an exported line here: the line that was made of it, how many messages are in its queue, whether it may connect. */
  imported: (importId: string) => key<{ lineId: string; messages: number; done: boolean }>("imported", importId),
  /** There while the owner has paused the line's queue. */
  queuePaused: (lineId: string) => key<true>("queue_paused", lineId),
  /** When a chat last wrote to the line, Unix ms; kept for a day (`chats.ts`). */
  heard: (lineId: string, chat: string) => key<number>("heard", lineId, chat),
  heardOfLine: (lineId: string) => prefix<number>("heard", lineId),
  allHeard: () => prefix<number>("heard"),
  /** When the line or the other side last wrote in the chat, Unix ms; `true` of an older gateway. Kept for a year (`chats.ts`). */
  knownChat: (lineId: string, chat: string) => key<number | true>("known_chat", lineId, chat),
  knownChatsOfLine: (lineId: string) => prefix<number | true>("known_chat", lineId),
  allKnownChats: () => prefix<number | true>("known_chat"),
  /** An incoming message that was kept: the same one is dropped when it comes again, see `seen.ts`. */
  seen: (lineId: string, chat: string, networkId: string) => key<SeenRow>("seen", lineId, chat, networkId),
  seenOfChat: (lineId: string, chat: string) => prefix<SeenRow>("seen", lineId, chat),
  /** When the chat was last read through the gateway, Unix ms; kept as long as what was seen in it. */
  chatRead: (lineId: string, chat: string) => key<number>("chat_read", lineId, chat),
  chatsRead: (lineId: string) => prefix<number>("chat_read", lineId),
  allChatsRead: () => prefix<number>("chat_read"),
  seenOfLine: (lineId: string) => prefix<SeenRow>("seen", lineId),
  allSeen: () => prefix<SeenRow>("seen"),
};
