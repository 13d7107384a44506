/** Reads of an account's lines. */
import { batchesOf } from "../base/batches.ts";
import { notFound } from "../errors.ts";
import { isRow, type Kv, type Row } from "../store/kv.ts";
import { shareReads } from "../store/layers/shared_reads.ts";
import type { Line } from "./line.ts";
import { lineKeys } from "./rows.ts";

/** Number of lines read per batch. */
const READ_AT_ONCE = 20;

export type AccountLines = ReturnType<typeof makeAccountLines>;

export function makeAccountLines(kv: Kv) {
  // Concurrent requests for the same line share one read; the result is as fresh as with a read for each.
  const sharedGet = shareReads(kv);

  /** Like `get`, but returns the line's row, with `lastUsed` as it stands there. */
  async function row(accountId: string, lineId: string): Promise<Row<Line>> {
    const slot = await sharedGet(lineKeys.line(lineId));
    if (!isRow(slot) || slot.value.accountId !== accountId || slot.value.wanted === "deleted") {
      throw notFound("session");
    }
    return slot;
  }

  /** Like `list`, but yields the lines one by one, with `lastUsed` as it stands in each line's row. */
  async function* each(accountId: string): AsyncIterable<Line> {
    for await (const rows of batchesOf(kv.list({ prefix: lineKeys.linesOfAccount(accountId) }), READ_AT_ONCE)) {
      const slots = await kv.getMany(rows.map((row) => lineKeys.line(row.value)));
      yield* slots.flatMap(({ value }) => value && value.wanted !== "deleted" ? value : []);
    }
  }

  /** Returns the line with its current `lastUsed`, which is kept in a row of its own. */
  async function used(line: Line): Promise<Line> {
    return { ...line, lastUsed: (await kv.get(lineKeys.lineUsed(line.id))).value ?? line.lastUsed };
  }

  return {
    /** Lists the lines, oldest first, without those that are being deleted. */
    async list(accountId: string): Promise<Line[]> {
      const lines = await Array.fromAsync(each(accountId));
      const usedAt = await kv.getMany(lines.map((line) => lineKeys.lineUsed(line.id)));
      return lines.map((line, i) => ({ ...line, lastUsed: usedAt[i]?.value ?? line.lastUsed }));
    },
    each,
    /** Returns the line. Throws Problem not_found, also for another account's line. */
    get: async (accountId: string, lineId: string) => await used((await row(accountId, lineId)).value),
    row,
    used,
  };
}
