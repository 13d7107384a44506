/** Finds lines with something to send, without reading every line's queue. */
import { firstRow, type Kv, type PrefixOf, type Row } from "../../store/kv.ts";
import { waitingSince } from "./place.ts";
import { LineQueue } from "./queue.ts";
import { messageKeys, type QueueRow } from "../rows.ts";

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
