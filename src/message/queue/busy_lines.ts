/** Which lines have something to send, found without asking each. */
import { firstRow, type Kv, type PrefixOf, type Row } from "../../store/kv.ts";
import { waitingSince } from "./place.ts";
import { LineQueue } from "./queue.ts";
import { messageKeys, type QueueRow } from "../rows.ts";

/**
 * Those of the lines with a message that may leave by now. One read for each of them and two more: a line without costs
 * nothing. Throws StoreError.
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
 * Since when the message waits that has waited longest in the queues of all lines, Unix ms; null when none does. One read
 * for each lane of a line in which something waits, and one more. Throws StoreError.
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

/** From a row that is found, the next read begins behind its lane. */
async function* firstRowsOfLanes(kv: Kv): AsyncGenerator<Row<QueueRow>> {
  const prefix = messageKeys.queues();
  for (let row = await firstRow(kv, { prefix }); row !== null;) {
    yield row;
    const [family, lineId, priority, lane] = row.key;
    row = await firstRow(kv, { prefix, start: [family!, lineId!, priority!, Number(lane) + 1] });
  }
}

/** The first row of each line that has any: from one that is found, the next read begins at the line behind it. */
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
