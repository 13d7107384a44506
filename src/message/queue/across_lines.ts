/** What the supervisor asks about the queues of all its lines: which have something to send, and what has expired. */
import type { Runtime } from "../../runtime.ts";
import { deleteKeys } from "../../store/delete_range.ts";
import { firstRow, type Kv, type PrefixOf, type Row } from "../../store/kv.ts";
import { hasEnded, type Message } from "../message.ts";
import type { Recorder } from "../record.ts";
import { messageKeys, type QueueRow } from "../rows.ts";
import { waitingSince } from "./place.ts";
import { LineQueue } from "./queue.ts";

/**
 * Returns those of the lines that have a message that may leave at `now`. Takes one read for each line with waiting
 * messages and two more; lines without any cost nothing. Throws StoreError.
 */
export async function busyLines(kv: Kv, lineIds: Iterable<string>, now: number): Promise<Set<string>> {
  const ids = [...lineIds].sort();
  const busy = new Set<string>();
  for await (const { key: [, lineId] } of firstRows(kv, messageKeys.queues(), ids)) busy.add(String(lineId));
  for await (const { key: [, lineId, sendAt] } of firstRows(kv, messageKeys.schedules(), ids)) {
    if (Number(sendAt) <= now) busy.add(String(lineId));
  }
  return busy;
}

/**
 * Returns since when the oldest message in the queues of all lines has waited, Unix ms; null if none waits. Takes about
 * one read for each lane of a line in which something waits. Throws StoreError.
 */
export async function oldestWaiting(kv: Kv): Promise<number | null> {
  let oldest: number | null = null;
  for await (const { key: [, lineId, , , position], value: { bulkId } } of firstRowsOfLanes(kv)) {
    const counts = bulkId === null || (await kv.get(messageKeys.bulk(bulkId))).value !== null;
    const since = counts
      ? waitingSince(Number(position))
      : await new LineQueue(kv, String(lineId)).oldestSince() ?? Infinity;
    oldest = Math.min(oldest ?? Infinity, since);
  }
  return oldest === Infinity ? null : oldest;
}

/** Yields the first row of each lane: after each row found, the next read begins behind its lane. */
async function* firstRowsOfLanes(kv: Kv): AsyncGenerator<Row<QueueRow>> {
  const prefix = messageKeys.queues();
  for (let row = await firstRow(kv, { prefix }); row !== null;) {
    yield row;
    const [family, lineId, priority, lane] = row.key;
    row = await firstRow(kv, { prefix, start: [family!, lineId!, priority!, Number(lane) + 1] });
  }
}

/**
 * Yields the first row of each of the lines that has any: after each row found, the next read begins at the next line.
 */
async function* firstRows(
  kv: Kv,
  prefix: PrefixOf<QueueRow>,
  ids: readonly string[],
): AsyncGenerator<Row<QueueRow>> {
  for (let at = 0; at < ids.length;) {
    const row = await firstRow(kv, { prefix, start: [...prefix, ids[at]!] });
    if (row === null) return;
    const found = String(row.key[prefix.length]);
    while (at < ids.length && ids[at]! < found) at++;
    if (ids[at] !== found) continue;
    yield row;
    at++;
  }
}

/** Returns the time of the first expiry row, Unix ms; infinity if there is none. */
export async function nextExpiry(kv: Kv): Promise<number> {
  const first = await firstRow(kv, { prefix: messageKeys.expiries() });
  return first === null ? Infinity : Number(first.key[1]);
}

/** Messages checked per batch. */
const AT_ONCE = 500;

/**
 * Fails expired messages (promise 2). Skips a message that is on its way, whose outcome decides; a message of a bulk
 * that is still being accepted; and a message of a line without a recorder here, which the line's owner fails. Their
 * expiry rows stay and are checked again the next time.
 */
export async function expireMessages(
  { kv, runtime }: { kv: Kv; runtime: Runtime },
  recorderOf: (lineId: string) => Recorder | null,
): Promise<void> {
  /** Fails the message if possible. Resolves to whether its expiry needs no further check. */
  async function expire(message: Message | null): Promise<boolean> {
    if (message === null || hasEnded(message)) return true;
    // It was rescheduled; its new expiry has a row of its own.
    if (message.expiresAt > runtime.confirmed.now()) return true;
    if (message.status !== "queued") return false;
    if (message.bulkId !== null && (await kv.get(messageKeys.bulk(message.bulkId))).value === null) return false;
    const recorder = recorderOf(message.sessionId);
    return recorder !== null && await recorder.expire(message.id) !== null;
  }

  async function expireRows(rows: readonly Row<string[]>[]): Promise<void> {
    const slots = await kv.getMany(rows.flatMap((row) => row.value).map((id) => messageKeys.message(id)));
    const over = await Promise.all(slots.map((slot) => expire(slot.value)));
    let at = 0;
    const settled = rows.filter(({ value }) => over.slice(at, at += value.length).every(Boolean));
    await deleteKeys(kv, settled.map(({ key }) => key));
  }

  const range = { prefix: messageKeys.expiries(), end: messageKeys.expiry(runtime.confirmed.now() + 1, "") };
  let due: Row<string[]>[] = [];
  let messages = 0;
  for await (const row of kv.list(range)) {
    due.push(row);
    messages += row.value.length;
    if (messages < AT_ONCE) continue;
    await expireRows(due);
    due = [];
    messages = 0;
  }
  if (due.length > 0) await expireRows(due);
}
