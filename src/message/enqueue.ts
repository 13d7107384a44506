/** The rows of a message that waits: they come in the commit that accepts it, and go in the one that ends it. */
import { dropFile, keepFile } from "../media/store.ts";
import type { Change } from "../store/kv.ts";
import { attachmentOf, storedFile } from "./content.ts";
import type { Message } from "./message.ts";
import { messageKeys } from "./rows.ts";

/** Adds new messages to the change, with their places in the queue, their files' rows, and until when they may wait. */
export function enqueue(change: Change, messages: readonly Message[]): void {
  for (const message of messages) {
    const { id: messageId, sessionId, position, accountId, bulkId } = message;
    change.set(messageKeys.message(messageId), message);
    change.set(messageKeys.queue(sessionId, position), { messageId, accountId, bulkId });
    keepFileOf(change, message);
  }
  addExpiries(change, messages);
}

/** Takes the message that ends out of the queue, and its file's row with it. */
export function dequeue(change: Change, { sessionId, position, content }: Message): void {
  change.delete(messageKeys.queue(sessionId, position));
  const file = storedFile(content);
  if (file) dropFile(change, file.fileId);
}

/** Undoes `enqueue` for a message of a staged bulk. */
export function removeQueued(change: Change, message: Message): void {
  dequeue(change, message);
  // The messages of a bulk end at the same time: their row is named for the first of them.
  change.delete(messageKeys.message(message.id)).delete(messageKeys.expiry(message.expiresAt, message.id));
}

/** Adds the row of the message's file, if it has one here. */
export function keepFileOf(change: Change, { content, accountId, createdAt }: Message): void {
  const file = storedFile(content);
  if (!file) return;
  const { mimetype, filename } = attachmentOf(content)!;
  const { fileId: id, size, sha256 } = file;
  keepFile(change, { id, accountId, size, sha256, mimetype, filename, createdAt, expiresAt: null });
}

/**
 * Adds to the change until when these new messages may wait. Those that end within the same second share a row, which
 * stays until then: nearly all have left by that time, and a row of its own for each would be a third of an accept.
 */
function addExpiries(change: Change, messages: readonly Message[]): void {
  const bySecond = Map.groupBy(messages, ({ expiresAt }) => Math.floor(expiresAt / 1000));
  for (const together of bySecond.values()) {
    const last = Math.max(...together.map(({ expiresAt }) => expiresAt));
    change.set(messageKeys.expiry(last, together[0]!.id), together.map(({ id }) => id));
  }
}
