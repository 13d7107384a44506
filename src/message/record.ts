/**
 * What becomes of a message, in ONE commit each: status, queue row, history, event, and whatever the caller adds
 * (promises 1 and 4). The moves are the table in `message.ts`; one that it does not know is a bug and throws.
 */
import type { EventLog } from "../event/log.ts";
import type { EventBody } from "../event/event.ts";
import type { MediaStore } from "../media/store.ts";
import type { Runtime } from "../runtime.ts";
import { messageKeys } from "./rows.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import { storedFile } from "./content.ts";
import type { RecordStatus } from "./history/history.ts";
import { hasEnded, type Message, type MessageError, NEXT_STATUS } from "./message.ts";
import { countEnd, finishBulk } from "./bulk.ts";
import { giveBack } from "./refund.ts";
import { dequeue } from "./enqueue.ts";
import { earlyReceipts, isProved, type SessionName, statusBody } from "./receipts.ts";

interface RecorderDeps {
  kv: Kv;
  runtime: Runtime;
  events: EventLog;
  recordStatus: RecordStatus;
  sessionName: SessionName;
  files: Pick<MediaStore, "remove">;
}

/** Adds to the commit what belongs to it besides the message: the line's pacing, when it was last used. */
export type Alongside = (change: Change, message: Message) => void;

/** Each resolves to the message as it is now, or to null when it is not in a state from which it could move. */
export interface Recorder {
  /** `queued` to `processing`: one more attempt, unless the message was changed since it was read. */
  dispatched(message: Pick<Message, "id" | "revision">, alongside?: Alongside): Promise<Message | null>;
  /** `processing` to `queued`, in its place, under its network id; `hold` takes the attempt back, for it was none. */
  requeued(messageId: string, why: "hold" | "again", alongside?: Alongside): Promise<Message | null>;
  /** `processing` to `sent`, with its event; `at` is when the server's word was there, Unix ms. */
  sent(messageId: string, at: number, alongside?: Alongside): Promise<Message | null>;
  /** `queued` to `sent`: the ack was lost, but a receipt proves that an earlier attempt arrived. */
  proved(messageId: string): Promise<Message | null>;
  /** `processing` to `failed`, with its event; to `sent` when a receipt proves that an attempt arrived. */
  failed(messageId: string, error: MessageError, alongside?: Alongside): Promise<Message | null>;
  /** `queued` to `failed` or proved `sent`, with its event: expired, or its line is gone. */
  dropped(messageId: string, error: MessageError): Promise<Message | null>;
  /** As `dropped`, but only before the first attempt: what may have left can't be called back. */
  cancelled(messageId: string, error: MessageError): Promise<Message | null>;
}

export function makeRecorder({ kv, events, recordStatus, sessionName, files, runtime }: RecorderDeps): Recorder {
  /** Reads, decides, commits; again when the row changed in between (a receipt came, the owner cancelled). */
  async function move(
    messageId: string,
    from: Message["status"],
    next: (message: Message) => Message | null,
    alongside?: Alongside,
  ): Promise<Message | null> {
    const moved = await retryOnConflict<Message | null>(kv, async () => {
      const change = new Change();
      const slot = await kv.get(messageKeys.message(messageId));
      const decided = slot.value?.status === from ? next(slot.value) : null;
      if (!decided) return { change, result: null };
      const message = decided.status === "failed" ? { ...decided, failedAt: runtime.clock.now() } : decided;
      if (!NEXT_STATUS[from].includes(message.status)) throw new Error(`no way from ${from} to ${message.status}`);
      change.check(slot).set(messageKeys.message(messageId), message);
      recordStatus(change, message, from);
      if (message.status === "processing") {
        change.set(messageKeys.messageOfNetworkId(message.sessionId, message.networkId), message.id);
      }
      if (hasEnded(message)) {
        countEnd(change, message);
        await end(change, message);
      }
      alongside?.(change, message);
      return { change, result: message };
    });
    if (moved && hasEnded(moved)) {
      events.committed(moved.accountId);
      if (moved.bulkId !== null) await finishBulk({ kv, events, sessionName }, moved.bulkId);
      const file = storedFile(moved.content);
      if (file) await removeFile(file.fileId);
    }
    return moved;
  }

  /** What ends with the message: its place in the queue and its file's row; and the events that say so. */
  async function end(change: Change, message: Message): Promise<void> {
    dequeue(change, message);
    const { id: messageId, networkId, jobId, accountId, sessionId, to, error, sentAt } = message;
    const name = await sessionName(sessionId);
    const append = (body: EventBody) => events.append(change, { accountId, sessionId, sessionName: name, ...body });
    if (error) {
      append({ event: "message.failed", data: { messageId, networkId, jobId, to, error } });
      return;
    }
    const at = new Date(sentAt ?? runtime.clock.now()).toISOString();
    append({ event: "message.sent", data: { messageId, networkId, jobId, to, sentAt: at } });
    for (const receipt of await earlyReceipts(kv, message)) append(statusBody(message, receipt));
  }

  /** The row is gone with the commit; bytes that stay behind are swept as orphans. */
  async function removeFile(fileId: string): Promise<void> {
    try {
      await files.remove(fileId);
    } catch (error) {
      runtime.log.warn({ fileId, error: String(error) }, "the file of a message that ended could not be removed");
    }
  }

  return {
    dispatched: ({ id, revision }, alongside) =>
      move(id, "queued", (m) => m.revision === revision ? underWay(m, runtime.clock.now()) : null, alongside),
    requeued: (messageId, why, alongside) =>
      move(
        messageId,
        "processing",
        (m) => ({ ...m, status: "queued", attempts: why === "hold" ? m.attempts - 1 : m.attempts }),
        alongside,
      ),
    sent: (messageId, at, alongside) =>
      move(messageId, "processing", (m) => ({ ...m, status: "sent", sentAt: at, error: null }), alongside),
    proved: (messageId) => move(messageId, "queued", (m) => ({ ...m, status: "sent", sentAt: m.deliveredAt })),
    failed: (messageId, error, alongside) =>
      move(messageId, "processing", (m) => failedUnlessProved(m, error), alongside),
    dropped: (messageId, error) => move(messageId, "queued", (m) => failedUnlessProved(m, error)),
    cancelled: (messageId, error) =>
      move(messageId, "queued", (m) => m.attempts === 0 ? { ...m, status: "failed", error } : null, giveBack),
  };
}

function underWay(message: Message, now: number): Message {
  return {
    ...message,
    status: "processing",
    attempts: message.attempts + 1,
    dispatchedAt: message.dispatchedAt ?? now,
  };
}

/** Acks may all be lost and the message have arrived: what a phone has told counts more. */
function failedUnlessProved(message: Message, error: MessageError): Message {
  if (isProved(message)) return { ...message, status: "sent", sentAt: message.deliveredAt, error: null };
  return { ...message, status: "failed", error };
}
