/** How many messages one commit takes. */
import { COMMIT_LIMITS } from "../store/limits.ts";
import { charactersIn } from "./content.ts";
import type { SendManner } from "./message.ts";
import type { SendItem } from "./send.ts";

/** Rows of one message: one may be an answer kept, and each may wait until a second of its own. */
const ROWS_A_MESSAGE = 6;
/** Some rows are the account's: ledger, history, quota. */
const MESSAGES_A_COMMIT = Math.floor((COMMIT_LIMITS.mutations - 100) / ROWS_A_MESSAGE);
const BYTES_A_COMMIT = COMMIT_LIMITS.bytes - 188 * 1024;
/** A message's rows without its content, measured at about 600 bytes. */
const BYTES_A_MESSAGE = 1024;

/** What fills a commit. */
export interface Load {
  messages: number;
  bytes: number;
}

/** What these messages put into a commit, estimated from above. */
export function loadOf(items: readonly Pick<SendItem, "content" | "manner">[]): Load {
  let characters = 0;
  for (const { content, manner } of items) characters += charactersIn(content) + (manner ? charactersOf(manner) : 0);
  // Two bytes a UTF-16 unit is the most that the engine's serialisation takes.
  return { messages: items.length, bytes: items.length * BYTES_A_MESSAGE + 2 * characters };
}

function charactersOf({ quote, mentions = [] }: SendManner): number {
  return (quote?.text ?? "").length + (mentions === "all" ? 0 : mentions.join(" ").length);
}

/**
 * Cuts a list, in order, into pieces that each fit into one commit, of `most` items where that is less; what is too large
 * alone is a piece of its own.
 */
export function* commitSized<T>(
  items: Iterable<T>,
  loadOfItem: (item: T) => Load,
  most = Infinity,
): Generator<T[]> {
  let piece: T[] = [];
  let load = { messages: 0, bytes: 0 };
  for (const item of items) {
    const own = loadOfItem(item);
    const together = { messages: load.messages + own.messages, bytes: load.bytes + own.bytes };
    if (piece.length === most || (piece.length > 0 && !fitsOneCommit(together))) {
      yield piece;
      piece = [];
      load = own;
    } else {
      load = together;
    }
    piece.push(item);
  }
  if (piece.length > 0) yield piece;
}

export function fitsOneCommit(load: Load): boolean {
  return load.messages <= MESSAGES_A_COMMIT && load.bytes <= BYTES_A_COMMIT;
}
