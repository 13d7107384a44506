/** How many messages one commit takes. */
import { charactersIn, type OutgoingContent } from "./content.ts";

/**
 * Messages of one commit, well below the 900 rows that it may have: with up to five rows each, for one may be an answer
 * kept, and each may wait until a second of its own.
 */
const MESSAGES_A_COMMIT = 160;
/** Bytes of one commit, well below the 700 KiB that it may have. */
const BYTES_A_COMMIT = 512 * 1024;
/** A message's rows without its content, measured at about 600 bytes. */
const BYTES_A_MESSAGE = 1024;

/** What fills a commit. */
export interface Load {
  messages: number;
  bytes: number;
}

/** What messages with these contents put into a commit, estimated from above. */
export function loadOf(contents: readonly OutgoingContent[]): Load {
  let characters = 0;
  for (const content of contents) characters += charactersIn(content);
  // Two bytes a UTF-16 unit is the most that the engine's serialisation takes.
  return { messages: contents.length, bytes: contents.length * BYTES_A_MESSAGE + 2 * characters };
}

/** Cuts a list, in order, into pieces that each fit into one commit; what is too large alone is a piece of its own. */
export function* commitSized<T>(items: Iterable<T>, loadOfItem: (item: T) => Load): Generator<T[]> {
  let piece: T[] = [];
  let load = { messages: 0, bytes: 0 };
  for (const item of items) {
    const own = loadOfItem(item);
    const together = { messages: load.messages + own.messages, bytes: load.bytes + own.bytes };
    if (piece.length > 0 && !fitsOneCommit(together)) {
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
