/** Taking back what is still queued: one message, or what is left of a bulk. */
import { notFound, Problem } from "../errors.ts";
import type { Kv } from "../store/kv.ts";
import { messageIdsOf } from "./bulk.ts";
import type { Message, MessageError } from "./message.ts";
import type { Recorder } from "./record.ts";
import { settleRefunds } from "./refund.ts";
import { messageKeys } from "./rows.ts";

export const CANCELLED: MessageError = { code: "cancelled", message: "It was cancelled before it could leave." };

export interface Cancel {
  /**
   * Ends the message if it has not been handed to the network yet, and gives its quota back. Throws Problem not_found, also
   * for another account's id, and not_cancellable.
   */
  message(accountId: string, messageId: string): Promise<Message>;
  /** The same for all of a bulk that still waits, which may be none. Throws Problem not_found. */
  bulk(accountId: string, bulkId: string): Promise<Message[]>;
}

interface CancelOptions {
  kv: Kv;
  recorder: Recorder;
  /** Called afterwards with each line whose queue has changed. */
  dequeued: (lineId: string) => void;
}

export function makeCancel({ kv, recorder, dequeued }: CancelOptions): Cancel {
  return {
    async message(accountId, messageId) {
      const { value } = await kv.get(messageKeys.message(messageId));
      if (value?.accountId !== accountId) throw notFound("message");
      const [cancelled] = await recorder.cancelled([messageId], CANCELLED);
      if (!cancelled) throw new Problem("not_cancellable", "It was already handed to the network, or has ended.");
      await settleRefunds(kv, accountId);
      dequeued(cancelled.sessionId);
      return cancelled;
    },

    async bulk(accountId, bulkId) {
      const { value } = await kv.get(messageKeys.bulk(bulkId));
      if (value?.accountId !== accountId) throw notFound("bulk");
      // From the end, so that the line does not run after us and send one more at each step.
      const cancelled = await recorder.cancelled((await messageIdsOf(kv, value)).reverse(), CANCELLED);
      await settleRefunds(kv, accountId);
      dequeued(value.sessionId);
      return cancelled.reverse();
    },
  };
}
