/** The lines of an account, read. */
import { batchesOf } from "../base/batches.ts";
import { notFound } from "../errors.ts";
import { isRow, type Kv, type Row } from "../store/kv.ts";
import { shareReads } from "../store/layers/shared_reads.ts";
import type { Line } from "./line.ts";
import { lineKeys } from "./rows.ts";

/** Lines read at a time. */
const READ_AT_ONCE = 20;

export type AccountLines = ReturnType<typeof makeAccountLines>;

export function makeAccountLines(kv: Kv) {
  // Concurrent requests for a line share one read of it, which is as fresh as one each.
  const sharedGet = shareReads(kv);

  /** As `get`, as its row has it. */
  async function row(accountId: string, lineId: string): Promise<Row<Line>> {
    const slot = await sharedGet(lineKeys.line(lineId));
    if (!isRow(slot) || slot.value.accountId !== accountId || slot.value.wanted === "deleted") {
      throw notFound("session");
    }
    return slot;
  }

  /** As `list`, one after another, each as its row has it. */
  async function* each(accountId: string): AsyncIterable<Line> {
    for await (const rows of batchesOf(kv.list({ prefix: lineKeys.linesOfAccount(accountId) }), READ_AT_ONCE)) {
      const slots = await kv.getMany(rows.map((row) => lineKeys.line(row.value)));
      yield* slots.flatMap(({ value }) => value && value.wanted !== "deleted" ? value : []);
    }
  }

  /** The line with when it was used last, which has a row of its own. */
  async function used(line: Line): Promise<Line> {
    return { ...line, lastUsed: (await kv.get(lineKeys.lineUsed(line.id))).value ?? line.lastUsed };
  }

  return {
    /** Oldest first. Deleted lines do not appear. */
    async list(accountId: string): Promise<Line[]> {
      const lines = await Array.fromAsync(each(accountId));
      const usedAt = await kv.getMany(lines.map((line) => lineKeys.lineUsed(line.id)));
      return lines.map((line, i) => ({ ...line, lastUsed: usedAt[i]?.value ?? line.lastUsed }));
    },
    each,
    /** Throws Problem not_found, also for another account's line. */
    get: async (accountId: string, lineId: string) => await used((await row(accountId, lineId)).value),
    row,
    used,
  };
}
