/** Which lines have something to send, found without asking each. */
import type { Kv, PrefixOf, Row } from "../store/kv.ts";
import { messageKeys, type QueueRow } from "./rows.ts";

/**
 * Those of the lines with a message that may leave by now. One read for each of them and two more: a line without costs
 * nothing. Throws StoreError.
 */
export async function busyLines(kv: Kv, lineIds: Iterable<string>, now: number): Promise<Set<string>> {
  const ids = [...lineIds].sort();
  const busy = new Set<string>();
  for await (const { key: [, lineId] } of firstRows(kv, messageKeys.queues(), ids)) busy.add(lineId as string);
  for await (const { key: [, lineId, sendAt] } of firstRows(kv, messageKeys.schedules(), ids)) {
    if (sendAt as number <= now) busy.add(lineId as string);
  }
  return busy;
}

/** The first row of each line that has any: from one that is found, the next read begins at the line behind it. */
async function* firstRows(
  kv: Kv,
  prefix: PrefixOf<QueueRow>,
  ids: readonly string[],
): AsyncGenerator<Row<QueueRow>> {
  for (let at = 0; at < ids.length;) {
    const [row] = await Array.fromAsync(kv.list({ prefix, start: [...prefix, ids[at]!] }, { limit: 1 }));
    if (!row) return;
    const found = row.key[prefix.length] as string;
    while (at < ids.length && ids[at]! < found) at++;
    if (ids[at] !== found) continue;
    yield row;
    at++;
  }
}
