/**
 * The place of a message in its line's queue, as the keys of queue rows encode it
 * (docs/decisions/0014-order-of-the-queue.md).
 */
import type { Key, Row } from "../../store/kv.ts";
import { chatOf, hasEnded, type Message } from "../message.ts";
import { type Lane, LANES, messageKeys, type QueueRow } from "../rows.ts";

/** Returns the position of a message that begins to wait at this time, Unix ms. */
export function positionAt(time: number): number {
  return time * 1000;
}

/** Returns when a message at this position began to wait, Unix ms. */
export function waitingSince(position: number): number {
  return Math.floor(position / 1000);
}

/** Returns whether the message waits at the place of this key. */
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

/** Returns the lane of a queue row. */
export function laneAt({ key }: Pick<Row<QueueRow>, "key">): Lane {
  return LANES[Number(key[3])]!;
}

/** Returns the position of a queue row. */
export function positionOf({ key }: Row<QueueRow>): number {
  return Number(key[4]);
}

/** Returns whether both queue rows are in the same lane of the same priority. */
export function isSameLane(one: Row<QueueRow>, other: Row<QueueRow>): boolean {
  return one.key[2] === other.key[2] && one.key[3] === other.key[3];
}

/** Returns the key right after this one, whose last part must be an integer. */
export function keyAfter(key: Key): Key {
  return [...key.slice(0, -1), Number(key.at(-1)) + 1];
}
