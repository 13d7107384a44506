/** What goes with a deleted line, its own row last: a crash in between begins again. Its messages stay in the history. */
import { lineKeys } from "./rows.ts";
import { messageKeys } from "../message/rows.ts";
import { Change, type Key, type Kv, type PrefixOf } from "../store/kv.ts";
import type { Line } from "./line.ts";

const ROWS_A_COMMIT = 500;

/** Removes every row that only this line needs. */
export async function deleteLine(kv: Kv, line: Line): Promise<void> {
  const families: PrefixOf<unknown>[] = [lineKeys.seenOfLine(line.id), messageKeys.networkIdsOfLine(line.id)];
  for (const prefix of families) {
    let batch: Key[] = [];
    for await (const row of kv.list({ prefix })) {
      batch.push(row.key);
      if (batch.length < ROWS_A_COMMIT) continue;
      await deleteAll(kv, batch);
      batch = [];
    }
    await deleteAll(kv, batch);
  }
  await deleteAll(kv, [lineKeys.pacing(line.id), lineKeys.lineUsed(line.id), lineKeys.line(line.id)]);
}

async function deleteAll(kv: Kv, rows: readonly Key[]): Promise<void> {
  if (rows.length === 0) return;
  const change = new Change();
  for (const key of rows) change.delete(key);
  await kv.commit(change);
}
