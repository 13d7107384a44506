/** The rows of a message that waits, as accept writes them, and how many of them one commit takes. */
import { dropFile, keepFile } from "../media/store.ts";
import { messageKeys } from "./rows.ts";
import type { Change } from "../store/kv.ts";
import { type OutgoingContent, remoteFile, storedFile } from "./content.ts";
import { addExpiries } from "./expiry.ts";
import type { Message } from "./message.ts";
import { dequeue, enqueue } from "./queue.ts";

/**
 * Messages of one commit, well below the 900 rows that it may have: with up to five rows each, for one may be an answer
 * kept, and each may wait until a second of its own.
 */
const MESSAGES_A_COMMIT = 160;
/** Bytes of one commit, well below the 700 KiB that it may have. */
const BYTES_A_COMMIT = 512 * 1024;
/** A message's rows without its text, measured at about 600 bytes. */
const BYTES_A_MESSAGE = 1024;

/** Adds new messages to the change, with their places in the queue, their files' rows, and until when they may wait. */
export function addMessages(change: Change, messages: readonly Message[]): void {
  for (const message of messages) {
    enqueue(change, message);
    keepFileOf(change, message);
  }
  addExpiries(change, messages);
}

/** Adds the row of the message's file, if it has one here. */
export function keepFileOf(change: Change, { content, accountId, createdAt }: Message): void {
  const file = storedFile(content);
  if (content.kind === "text" || !file) return;
  const { mimetype, filename } = content;
  const { fileId: id, size, sha256 } = file;
  keepFile(change, { id, accountId, size, sha256, mimetype, filename, createdAt, expiresAt: null });
}

/** Adds to the change that the message, one of a bulk's draft, was never there. */
export function removeMessage(change: Change, message: Message): void {
  dequeue(change, message);
  // The messages of a bulk end at the same time: their row is named for the first of them.
  change.delete(messageKeys.message(message.id)).delete(messageKeys.expiry(message.expiresAt, message.id));
  const file = storedFile(message.content);
  if (file) dropFile(change, file.fileId);
}

/** What fills a commit. */
export interface Load {
  messages: number;
  bytes: number;
}

/** What messages with these contents put into a commit, estimated from above. */
export function loadOf(contents: Iterable<OutgoingContent>): Load {
  const load = { messages: 0, bytes: 0 };
  for (const content of contents) {
    const text = content.kind === "text" ? content.text : (content.caption ?? "") + content.filename;
    const url = remoteFile(content)?.url ?? "";
    load.messages++;
    // Two bytes a UTF-16 unit is the most that the engine's serialisation takes.
    load.bytes += BYTES_A_MESSAGE + 2 * (text.length + url.length);
  }
  return load;
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
