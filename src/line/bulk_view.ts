/** How far a bulk is, and when the last of it will probably leave. */
import type { Accounts } from "../account/accounts.ts";
import { notFound } from "../errors.ts";
import { countsOf } from "../message/bulk.ts";
import { type Bulk, messageKeys } from "../message/rows.ts";
import type { Clock } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import { lineKeys } from "./rows.ts";
import { Estimate, Holds } from "./waiting.ts";

/** Rows before a bulk that are counted: further ahead an estimate helps nobody. */
const COUNTED_AHEAD = 10_000;

interface BulkProgress {
  bulk: Bulk;
  queued: number;
  sent: number;
  failed: number;
  /** Unix ms; null when nothing waits, the line is not connected or its queue paused, or the plan starts no new chats. */
  etaAt: number | null;
}

/** Throws Problem not_found, also for another account's bulk. */
export type BulkView = (accountId: string, bulkId: string) => Promise<BulkProgress>;

export function makeBulkView(deps: { kv: Kv; clock: Clock; accounts: Pick<Accounts, "caller"> }): BulkView {
  const { kv } = deps;

  async function eta(bulkId: string, { accountId, sessionId }: Bulk, queued: number): Promise<number | null> {
    const line = (await kv.get(lineKeys.line(sessionId))).value;
    const holds = await Holds.of(deps, { accountId, id: sessionId });
    if (queued === 0 || line?.status !== "connected" || !holds || holds.paused) return null;
    const ahead: { chat: string; notBefore: number; isOfBulk: boolean }[] = [];
    let left = queued;
    const families = [messageKeys.queueOfLine(sessionId), messageKeys.scheduleOfLine(sessionId)];
    for (const prefix of families) {
      if (left === 0) break;
      for await (const { key, value } of kv.list({ prefix }, { limit: COUNTED_AHEAD })) {
        const isOfBulk = value.bulkId === bulkId;
        ahead.push({ chat: value.chat, notBefore: key[0] === "schedule" ? Number(key[2]) : 0, isOfBulk });
        if (isOfBulk && --left === 0) break;
      }
    }
    const fresh = await holds.newAmong(ahead.map(({ chat }) => chat));
    const estimate = new Estimate(holds);
    let last: number | null = holds.now;
    const next = (startsChat: boolean, notBefore: number) => {
      const at = estimate.next({ startsChat, notBefore });
      last = at === null || last === null ? null : Math.max(last, at);
    };
    for (const { chat, notBefore, isOfBulk } of ahead) {
      if (isOfBulk) next(fresh.delete(chat), notBefore);
      else estimate.next({ startsChat: fresh.delete(chat), notBefore });
    }
    // What lies further ahead than was counted.
    for (; left > 0; left--) next(false, 0);
    return last;
  }

  return async (accountId, bulkId) => {
    const { value: bulk } = await kv.get(messageKeys.bulk(bulkId));
    if (bulk?.accountId !== accountId) throw notFound("bulk");
    const { sent, failed } = await countsOf(kv, bulkId);
    const queued = bulk.total - sent - failed;
    return { bulk, queued, sent, failed, etaAt: await eta(bulkId, bulk, queued) };
  };
}
