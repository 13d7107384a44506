/** How many messages fit into one commit. */
import { COMMIT_LIMITS } from "../store/limits.ts";
import { charactersIn } from "./content.ts";
import type { SendManner } from "./message.ts";
import type { SendItem } from "./send.ts";

/** Rows per message, including a kept answer to an idempotent request and an expiry row of its own. */
const ROWS_A_MESSAGE = 6;
/** Leaves room for rows of the account: ledger, history, quota. */
const MESSAGES_A_COMMIT = Math.floor((COMMIT_LIMITS.mutations - 100) / ROWS_A_MESSAGE);
const BYTES_A_COMMIT = COMMIT_LIMITS.bytes - 188 * 1024;
/** Upper bound for a message's rows without its content, which were measured at about 600 bytes. */
const BYTES_A_MESSAGE = 1024;

/** The size of a part of a commit. */
export interface Load {
  messages: number;
  bytes: number;
}

/** The most that a commit takes. */
export const WHOLE_COMMIT: Load = { messages: MESSAGES_A_COMMIT, bytes: BYTES_A_COMMIT };

/** Returns an upper bound of what these messages add to a commit. */
export function loadOf(items: readonly Pick<SendItem, "content" | "manner">[]): Load {
  let characters = 0;
  for (const { content, manner } of items) characters += charactersIn(content) + (manner ? charactersOf(manner) : 0);
  // The engine's serialisation takes at most two bytes per UTF-16 code unit.
  return { messages: items.length, bytes: items.length * BYTES_A_MESSAGE + 2 * characters };
}

function charactersOf({ quote, mentions = [], tags = [], cloud }: SendManner): number {
  return (quote?.text ?? "").length + (mentions === "all" ? 0 : mentions.join(" ").length) + tags.join(" ").length +
    (cloud?.callbackData ?? "").length;
}

/**
 * Splits a list, in order, into pieces that each fit into one commit and have at most `most` items. An item that does
 * not fit even alone is a piece of its own.
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
