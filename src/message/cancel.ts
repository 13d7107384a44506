/** Taking back what is still queued: one message, or what is left of a bulk. */
import { notFound, Problem } from "../errors.ts";
import { messageKeys } from "./rows.ts";
import type { Kv } from "../store/kv.ts";
import type { Message, MessageError } from "./message.ts";
import { LineQueue } from "./queue.ts";
import type { Recorder } from "./record.ts";

export const CANCELLED: MessageError = { code: "cancelled", message: "It was cancelled before it could leave." };
/** Messages of a bulk that end at a time. */
const AT_ONCE = 50;

/**
 * Ends the message, or every message of the bulk, that has not been handed to the network yet; resolves to those.
 * Throws Problem not_found, also for another account's id, and not_cancellable when nothing could be taken back.
 */
export type Cancel = (accountId: string, messageOrBulkId: string) => Promise<Message[]>;

export interface CancelOptions {
  kv: Kv;
  recorder: Recorder;
  /** Told afterwards which line has less to do. */
  dequeued: (lineId: string) => void;
}

export function makeCancel({ kv, recorder, dequeued }: CancelOptions): Cancel {
  async function one(accountId: string, messageId: string): Promise<Message[]> {
    const message = (await kv.get(messageKeys.message(messageId))).value;
    if (message?.accountId !== accountId) throw notFound("message");
    const cancelled = await recorder.cancelled(messageId, CANCELLED);
    return cancelled ? [cancelled] : [];
  }

  async function bulk(accountId: string, bulkId: string): Promise<Message[]> {
    const { value } = await kv.get(messageKeys.bulk(bulkId));
    if (value?.accountId !== accountId) throw notFound("message");
    const waiting: string[] = [];
    for await (const row of new LineQueue(kv, value.sessionId).rows()) {
      if (row.value.bulkId === bulkId) waiting.push(row.value.messageId);
    }
    const cancelled: Message[] = [];
    // From the end, so that the line does not run after us and send one more at each step.
    for (let left = waiting.reverse(); left.length > 0; left = left.slice(AT_ONCE)) {
      const ended = await Promise.all(left.slice(0, AT_ONCE).map((id) => recorder.cancelled(id, CANCELLED)));
      cancelled.push(...ended.filter((message) => message !== null));
    }
    return cancelled.sort((a, b) => a.position - b.position);
  }

  return async (accountId, messageOrBulkId) => {
    const cancelled = await (messageOrBulkId.startsWith("blk_") ? bulk : one)(accountId, messageOrBulkId);
    if (cancelled.length === 0) {
      throw new Problem("not_cancellable", "It was already handed to the network, or has ended.");
    }
    dequeued(cancelled[0]!.sessionId);
    return cancelled;
  };
}
