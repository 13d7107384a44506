/** Accepted bulks: their messages, how many of those have ended, and the event when all have. */
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

/** Counts the message for its bulk, in the commit that ends it. */
export function countEnd(change: Change, { bulkId, status }: Message): void {
  if (bulkId !== null && (status === "sent" || status === "failed")) {
    change.add(messageKeys.bulkCount(bulkId, status), 1);
  }
}

/** Returns the account's bulk. Throws Problem not_found, also for another account's bulk. */
export async function ownBulk(kv: Kv, accountId: string, bulkId: string): Promise<Bulk> {
  const { value } = await kv.get(messageKeys.bulk(bulkId));
  if (value?.accountId !== accountId) throw notFound("bulk");
  return value;
}

/** Returns how many messages of the bulk were sent, and how many failed. */
export async function countsOf(kv: Kv, bulkId: string): Promise<BulkCounts> {
  const [sent, failed] = await kv.getMany([
    messageKeys.bulkCount(bulkId, "sent"),
    messageKeys.bulkCount(bulkId, "failed"),
  ]);
  return { sent: Number(sent!.value ?? 0n), failed: Number(failed!.value ?? 0n) };
}

/** Returns the ids of the bulk's messages, in order, without those that the history no longer has. */
export async function messageIdsOf(kv: Kv, { accountId, firstHistoryNumber, total }: Bulk): Promise<string[]> {
  const ledger = await ledgerOf(kv, accountId);
  return await messageIds(kv, { accountId, ledger }, sequence(firstHistoryNumber, firstHistoryNumber + total - 1));
}

interface FinishDeps {
  kv: Kv;
  events: EventLog;
  sessionName: SessionName;
}

/**
 * Reports the bulk as finished, once, if all its messages have ended (promise 4). Resolves to whether this call did so.
 */
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

/** Reports bulks whose last message ended just before a crash. Resolves to the number reported. */
export async function finishBulks(deps: FinishDeps): Promise<number> {
  let finished = 0;
  for await (const { key } of deps.kv.list({ prefix: messageKeys.openBulks() })) {
    if (await finishBulk(deps, String(key.at(-1)))) finished++;
  }
  return finished;
}
