/** A bulk after it was accepted: its messages, how many of them have ended, and the event when all have. */
import { notFound } from "../errors.ts";
import type { EventLog } from "../event/log.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import { ledgerOf, messageIds, sequence } from "./history/ledger.ts";
import type { Message } from "./message.ts";
import type { SessionName } from "./receipts.ts";
import { type Bulk, messageKeys } from "./rows.ts";

interface BulkCounts {
  sent: number;
  failed: number;
}

/** Adds to the commit that ends a message that its bulk has one more with this end. */
export function countEnd(change: Change, { bulkId, status }: Message): void {
  if (bulkId !== null && (status === "sent" || status === "failed")) {
    change.add(messageKeys.bulkCount(bulkId, status), 1);
  }
}

/** The account's bulk. Throws Problem not_found, also for another account's. */
export async function ownBulk(kv: Kv, accountId: string, bulkId: string): Promise<Bulk> {
  const { value } = await kv.get(messageKeys.bulk(bulkId));
  if (value?.accountId !== accountId) throw notFound("bulk");
  return value;
}

/** How many messages of the bulk have ended, and how. */
export async function countsOf(kv: Kv, bulkId: string): Promise<BulkCounts> {
  const [sent, failed] = await kv.getMany([
    messageKeys.bulkCount(bulkId, "sent"),
    messageKeys.bulkCount(bulkId, "failed"),
  ]);
  return { sent: Number(sent!.value ?? 0n), failed: Number(failed!.value ?? 0n) };
}

/** Ids of the bulk's messages, in their order; those that the history no longer has are left out. */
export async function messageIdsOf(kv: Kv, { accountId, firstHistoryNumber, total }: Bulk): Promise<string[]> {
  const ledger = await ledgerOf(kv, accountId);
  return await messageIds(kv, { accountId, ledger }, sequence(firstHistoryNumber, firstHistoryNumber + total - 1));
}

interface FinishDeps {
  kv: Kv;
  events: EventLog;
  sessionName: SessionName;
}

/** Reports the bulk as finished, once, when every message of it has ended (promise 4); resolves to whether it was now. */
export async function finishBulk({ kv, events, sessionName }: FinishDeps, bulkId: string): Promise<boolean> {
  const finished = await retryOnConflict<Bulk | null>(kv, async () => {
    const open = await kv.get(messageKeys.openBulk(bulkId));
    const change = new Change().check(open);
    const { value: bulk } = await kv.get(messageKeys.bulk(bulkId));
    const { sent, failed } = await countsOf(kv, bulkId);
    if (open.value === null || bulk === null || sent + failed < bulk.total) {
      return { change: new Change(), result: null };
    }
    const { accountId, sessionId, total } = bulk;
    change.delete(open.key);
    events.append(change, {
      accountId,
      sessionId,
      sessionName: await sessionName(sessionId),
      event: "bulk.finished",
      data: { bulkId, total, sent, failed },
    });
    return { change, result: bulk };
  });
  if (finished) events.committed(finished.accountId);
  return finished !== null;
}

/** Reports what a crash left unreported between the last end and the report; resolves to how many bulks that were. */
export async function finishBulks(deps: FinishDeps): Promise<number> {
  let finished = 0;
  for await (const { key } of deps.kv.list({ prefix: messageKeys.openBulks() })) {
    if (await finishBulk(deps, String(key.at(-1)))) finished++;
  }
  return finished;
}
