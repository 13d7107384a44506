/**
 * The place of a message in its line's queue, as the keys of its rows encode it
 * (docs/decisions/0014-order-of-the-queue.md). The rows are written in the commit that accepts the message, and removed
 * in the commit that ends it.
 */
import { dropFile, keepFile } from "../../media/store.ts";
import type { Bell } from "../../store/bell.ts";
import { type Change, isRow, type Key, type KeyOf, type Kv, type Row } from "../../store/kv.ts";
import { attachmentOf, ownFile } from "../content.ts";
import { chatOf, hasEnded, isProposed, type Message } from "../message.ts";
import { type Lane, LANES, messageKeys, type QueueRow } from "../rows.ts";

/** Prefix of the bell topics that wake the lines whose queue has changed; the line's id follows. */
export const QUEUE_TOPIC = "queue/";

/** Announces that a message of the line was accepted, changed or cancelled. Call it after the commit. */
export function ringQueue(bell: Pick<Bell, "ring">, lineId: string): void {
  bell.ring(QUEUE_TOPIC + lineId);
}

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
  if (hasEnded(message) || isProposed(message) !== (key[0] === "proposal")) return false;
  const { sessionId, priority, to, id } = message;
  const place = key[0] === "proposal"
    ? messageKeys.proposal(sessionId, id)
    : key[0] === "queue"
    ? messageKeys.queue(sessionId, priority, laneAt({ key }), message)
    : key[0] === "schedule"
    ? scheduleKeyOf(message)
    : messageKeys.chatQueue(sessionId, chatOf(to), message);
  return place.every((part, i) => part === key[i]);
}

/** Returns the key of the message's row in the schedule, which it has until it may leave. */
export function scheduleKeyOf(message: Message): KeyOf<QueueRow> {
  return messageKeys.schedule(message.sessionId, message.sendAt ?? 0, message);
}

/** Returns the lane of a queue row. */
export function laneAt({ key }: Pick<Row<QueueRow>, "key">): Lane {
  return LANES[Number(key[3])]!;
}

/** Returns the position of a queue row. */
export function positionOf({ key }: Row<QueueRow>): number {
  return Number(key[4]);
}

/** Returns the key of the row by chat that belongs to a queue row. */
export function chatKeyOf(row: Row<QueueRow>): KeyOf<QueueRow> {
  const { key: [, lineId], value: { chat } } = row;
  return messageKeys.chatQueue(String(lineId), chat, {
    position: positionOf(row),
    historyNumber: Number(row.key[5]),
  });
}

/**
 * Commits a change of these rows, or of those that are left when some are removed meanwhile: what is written for a row
 * that is gone would stay behind. Takes no more rows than a commit takes checks.
 */
export async function changeRows(
  kv: Kv,
  rows: readonly Row<QueueRow>[],
  changeOf: (left: readonly Row<QueueRow>[]) => Change,
): Promise<void> {
  for (let left = rows; left.length > 0;) {
    const change = changeOf(left);
    for (const row of left) change.check(row);
    if (await kv.commit(change) !== null) return;
    left = (await kv.getMany<QueueRow>(left.map(({ key }) => key))).filter(isRow);
  }
}

/** Returns whether both queue rows are in the same lane of the same priority. */
export function isSameLane(one: Row<QueueRow>, other: Row<QueueRow>): boolean {
  return one.key[2] === other.key[2] && one.key[3] === other.key[3];
}

/** Returns the key right after this one, whose last part must be an integer. */
export function keyAfter(key: Key): Key {
  return [...key.slice(0, -1), Number(key.at(-1)) + 1];
}

/**
 * Adds new messages to the change, with their rows in the queue, the schedule or the proposals, their files' rows,
 * their expiries, and what a reply cancels. All go to the cold lane: this code does not read which chats wrote lately, and the runner
 * moves replies later (`Lanes`). Their rows by chat are left to `completeChats`, which finds them if the commit also
 * advances the ledger past their positions; if it does not, `addToChats` adds them.
 */
export function enqueue(change: Change, messages: readonly Message[]): void {
  for (const message of messages) {
    change.set(messageKeys.message(message.id), message);
    addPlace(change, message);
    keepFileOf(change, message);
    if (message.manner?.cancelOnReply) change.set(replyCancelsKeyOf(message), rowOf(message));
  }
  addExpiries(change, messages);
}

/** Removes the queue rows and the file's row of a message that ends. `lane` is its current lane, if known. */
export function dequeue(change: Change, message: Message, lane?: Lane): void {
  removePlace(change, message, lane);
  if (message.manner?.cancelOnReply) change.delete(replyCancelsKeyOf(message));
  const file = ownFile(message.content);
  if (file) dropFile(change, file.fileId);
}

/** Undoes `enqueue` for a message of a staged bulk. */
export function removeQueued(change: Change, message: Message): void {
  dequeue(change, message);
  // The messages of a bulk expire together, so they share one row, which is named after the first of them.
  change.delete(messageKeys.message(message.id)).delete(messageKeys.expiry(message.expiresAt, message.id));
}

/**
 * Moves the rows of a waiting message to its new place and expiry. `lane` is the current lane of its chat; null for a
 * message that may not leave yet: a scheduled or a proposed one.
 */
export function movePlace(
  change: Change,
  before: Message,
  { message, lane }: { message: Message; lane: Lane | null },
): void {
  removePlace(change, before);
  if (lane === null) addPlace(change, message);
  else addTurn(change, message, lane);
  if (message.expiresAt === before.expiresAt) return;
  // Named after the revision too: the message's first row may be shared, and must not be overwritten.
  change.set(messageKeys.expiry(message.expiresAt, `${message.id}.${message.revision}`), [message.id]);
}

/** Adds the message's rows to the queue, among the messages that may leave. */
export function addTurn(change: Change, message: Message, lane: Lane): void {
  const { sessionId, priority } = message;
  const row = rowOf(message);
  change.set(messageKeys.queue(sessionId, priority, lane, message), row);
  change.set(messageKeys.chatQueue(sessionId, row.chat, message), row);
}

/** Adds the rows by chat of those messages that wait in the queue. */
export function addToChats(change: Change, messages: readonly Message[]): void {
  for (const message of messages) {
    if (message.sendAt !== null || isProposed(message)) continue;
    change.set(messageKeys.chatQueue(message.sessionId, chatOf(message.to), message), rowOf(message));
  }
}

/** Adds the row of the message's file, if it has one in the media store. */
export function keepFileOf(change: Change, { content, accountId }: Message): void {
  const file = ownFile(content);
  if (!file) return;
  const { mimetype, filename } = attachmentOf(content)!;
  const { fileId: id, size, sha256 } = file;
  keepFile(change, { id, accountId, size, sha256, mimetype, filename, expiresAt: null });
}

function replyCancelsKeyOf({ sessionId, to, id }: Message): KeyOf<QueueRow> {
  return messageKeys.replyCancels(sessionId, chatOf(to), id);
}

function addPlace(change: Change, message: Message): void {
  const { sessionId, priority, sendAt, id } = message;
  const key = isProposed(message)
    ? messageKeys.proposal(sessionId, id)
    : sendAt === null
    ? messageKeys.queue(sessionId, priority, "cold", message)
    : scheduleKeyOf(message);
  change.set(key, rowOf(message));
}

/** Removes the message from proposals, the schedule and the queue: from the known lane, or else from all lanes. */
function removePlace(change: Change, message: Message, known?: Lane): void {
  const { sessionId, priority, to, sendAt, id, proposal } = message;
  if (proposal) change.delete(messageKeys.proposal(sessionId, id));
  if (sendAt !== null) change.delete(scheduleKeyOf(message));
  for (const lane of known ? [known] : LANES) change.delete(messageKeys.queue(sessionId, priority, lane, message));
  change.delete(messageKeys.chatQueue(sessionId, chatOf(to), message));
}

/** Returns the value of each of a message's queue rows. */
export function rowOf({ id, to, bulkId }: Message): QueueRow {
  return { messageId: id, chat: chatOf(to), bulkId };
}

/**
 * Adds the expiries of these messages to the change. Messages that expire within the same second share a row, which
 * stays until then. Nearly all have left by that time, and a row for each would be a third of the writes of an accept.
 */
function addExpiries(change: Change, messages: readonly Message[]): void {
  const bySecond = Map.groupBy(messages, ({ expiresAt }) => Math.floor(expiresAt / 1000));
  for (const together of bySecond.values()) {
    const last = Math.max(...together.map(({ expiresAt }) => expiresAt));
    change.set(messageKeys.expiry(last, together[0]!.id), together.map(({ id }) => id));
  }
}
