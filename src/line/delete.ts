/** What goes with a deleted line, its own row last: a crash in between begins again. Its messages stay in the history. */
import { lineKeys } from "./rows.ts";
import { messageKeys } from "../message/rows.ts";
import { deleteKeys, deleteRange } from "../store/delete_range.ts";
import type { Kv } from "../store/kv.ts";
import type { Line } from "./line.ts";

/** Removes every row that only this line needs. */
export async function deleteLine(kv: Kv, line: Line): Promise<void> {
  await deleteRange(kv, { prefix: lineKeys.seenOfLine(line.id) });
  await deleteRange(kv, { prefix: messageKeys.networkIdsOfLine(line.id) });
  await deleteKeys(kv, [lineKeys.pacing(line.id), lineKeys.lineUsed(line.id), lineKeys.line(line.id)]);
}
