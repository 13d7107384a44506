/** Where a message stands in the queue of its line: what the key of a queue row says (docs/decisions/0014-order-of-the-queue.md). */
import type { Key, Row } from "../../store/kv.ts";
import { chatOf, hasEnded, type Message } from "../message.ts";
import { type Lane, LANES, messageKeys, type QueueRow } from "../rows.ts";

/** The position of a message that begins to wait at this time (Unix ms). */
export function positionAt(time: number): number {
  return time * 1000;
}

/** When a message at this position began to wait, Unix ms. */
export function waitingSince(position: number): number {
  return Math.floor(position / 1000);
}

/** Whether the row at this key is where the message waits. */
export function isPlaceOf(key: Key, message: Message): boolean {
  if (hasEnded(message)) return false;
  const { sessionId, priority, sendAt, historyNumber, to } = message;
  const place = key[0] === "queue"
    ? messageKeys.queue(sessionId, priority, laneAt({ key }), message)
    : key[0] === "schedule"
    ? messageKeys.schedule(sessionId, sendAt ?? 0, historyNumber)
    : messageKeys.chatQueue(sessionId, chatOf(to), message);
  return place.every((part, i) => part === key[i]);
}

/** The lane of a row of the queue. */
export function laneAt({ key }: Pick<Row<QueueRow>, "key">): Lane {
  return LANES[Number(key[3])]!;
}

/** The position of a row of the queue. */
export function positionOf({ key }: Row<QueueRow>): number {
  return Number(key[4]);
}

/** Whether both rows of the queue are of the same lane of the same priority. */
export function isSameLane(one: Row<QueueRow>, other: Row<QueueRow>): boolean {
  return one.key[2] === other.key[2] && one.key[3] === other.key[3];
}

/** The key just past this one, whose last part is a whole number. */
export function keyAfter(key: Key): Key {
  return [...key.slice(0, -1), Number(key.at(-1)) + 1];
}
