/** Moving what is still queued: to another time, or to another priority. */
import { notFound, Problem } from "../errors.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import { movePlace } from "./queue/enqueue.ts";
import { positionAt } from "./queue/place.ts";
import { chatOf, type Message, type Priority } from "./message.ts";
import { type Lane, messageKeys } from "./rows.ts";

interface NewPlace {
  /** Unix ms; left out: as it is. */
  sendAt?: number | undefined;
  priority?: Priority | undefined;
}

/**
 * Resolves to the message at its new place; how long it may wait then counts from its new time. Throws Problem not_found,
 * also for another account's id, and not_editable when it may have left or has ended.
 */
export type Reschedule = (accountId: string, messageId: string, place: NewPlace) => Promise<Message>;

interface RescheduleOptions {
  kv: Kv;
  /** The lane in which messages to the chat stand now. */
  laneOf(lineId: string, chat: string): Promise<Lane>;
  /** Called afterwards with the line whose queue has changed. */
  queueChanged: (lineId: string) => void;
}

export function makeReschedule({ kv, laneOf, queueChanged }: RescheduleOptions): Reschedule {
  return async (accountId, messageId, { sendAt, priority }) => {
    const moved = await retryOnConflict(kv, async () => {
      const slot = await kv.get(messageKeys.message(messageId));
      const { value: before } = slot;
      if (before?.accountId !== accountId) throw notFound("message");
      if (before.status !== "queued" || before.attempts > 0) {
        throw new Problem("not_editable", "It was already handed to the network, or has ended.");
      }
      const message = at(before, { sendAt, priority });
      const change = new Change().check(slot).set(slot.key, message);
      movePlace(change, before, { message, lane: await laneOf(message.sessionId, chatOf(message.to)) });
      return { change, result: message };
    });
    queueChanged(moved.sessionId);
    return moved;
  };
}

function at(message: Message, { sendAt, priority = message.priority }: NewPlace): Message {
  if (sendAt === undefined) return { ...message, priority };
  const waits = message.expiresAt - (message.sendAt ?? message.createdAt);
  return { ...message, priority, sendAt, position: positionAt(sendAt), expiresAt: sendAt + waits };
}
