/**
 * The queue of a line: rows in the order of departure, with the time until which each message may wait.
 * Truth is these rows (promise 7); whoever adds or takes them does so in the commit that changes the message.
 */
import type { Change } from "../store/kv.ts";
import { keys } from "../store/keys.ts";
import type { Message } from "./message.ts";

/** Adds a new message, its place in the line's queue and its expiry to the change. */
export function enqueue(change: Change, message: Message): void {
  change
    .set(keys.message(message.id), message)
    .set(keys.queue(message.sessionId, message.position), {
      messageId: message.id,
      accountId: message.accountId,
      bulkId: message.bulkId,
    })
    .set(keys.expiry(message.expiresAt, message.id), message.sessionId);
}

/** Takes the message out of the queue in the change that ends it. */
export function dequeue(change: Change, message: Message): void {
  change.delete(keys.queue(message.sessionId, message.position)).delete(keys.expiry(message.expiresAt, message.id));
}
