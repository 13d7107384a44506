/** How far a bulk is, and when the last of it will probably leave. */
import type { Accounts } from "../account/account.ts";
import { notFound } from "../errors.ts";
import { countsOf } from "../message/bulk.ts";
import { type Bulk, messageKeys } from "../message/rows.ts";
import type { Clock } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import { delaysOf, nextDeparture } from "./pacing.ts";
import { lineKeys } from "./rows.ts";

/** Rows before a bulk that are counted: further ahead an estimate helps nobody. */
const COUNTED_AHEAD = 10_000;

interface BulkProgress {
  bulk: Bulk;
  queued: number;
  sent: number;
  failed: number;
  /** Unix ms; null when nothing waits, or the line is not connected or its queue paused. */
  etaAt: number | null;
}

/** Throws Problem not_found, also for another account's bulk. */
export type BulkView = (accountId: string, bulkId: string) => Promise<BulkProgress>;

export function makeBulkView(
  { kv, clock, accounts }: { kv: Kv; clock: Clock; accounts: Pick<Accounts, "caller"> },
): BulkView {
  /** The mean pause for each message that leaves before the last of the bulk, and for those of the bulk. */
  async function eta(bulkId: string, { accountId, sessionId }: Bulk, queued: number): Promise<number | null> {
    const [line, paused, pacing] = await Promise.all([
      kv.get(lineKeys.line(sessionId)),
      kv.get(lineKeys.queuePaused(sessionId)),
      kv.get(lineKeys.pacing(sessionId)),
    ]);
    const plan = (await accounts.caller(accountId))?.plan;
    if (queued === 0 || line.value?.status !== "connected" || paused.value || !plan) return null;
    const delays = delaysOf(plan);
    const now = clock.now();
    let left = queued;
    let ahead = 0;
    let dueAt = 0;
    const families = [messageKeys.queueOfLine(sessionId), messageKeys.scheduleOfLine(sessionId)];
    for (const prefix of families) {
      if (left === 0) break;
      for await (const { key, value } of kv.list({ prefix }, { limit: COUNTED_AHEAD })) {
        if (value.bulkId !== bulkId) ahead++;
        else left--;
        if (key[0] === "schedule") dueAt = key[2] as number;
        if (left === 0) break;
      }
    }
    const pause = (delays.minMs + delays.maxMs) / 2;
    const first = Math.max(now, nextDeparture(pacing.value, now, delays), dueAt);
    return Math.round(first + (ahead + queued - 1) * pause);
  }

  return async (accountId, bulkId) => {
    const { value: bulk } = await kv.get(messageKeys.bulk(bulkId));
    if (bulk?.accountId !== accountId) throw notFound("bulk");
    const { sent, failed } = await countsOf(kv, bulkId);
    const queued = bulk.total - sent - failed;
    return { bulk, queued, sent, failed, etaAt: await eta(bulkId, bulk, queued) };
  };
}
