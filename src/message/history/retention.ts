/**
 * Retention: removes an account's messages oldest first, each with all rows that belong to it. A few are removed with
 * each flush that other commits cause anyway, so that no send waits for a removal. The same commits move the
 * account's floor, the history number up to which messages are removed. So pages and totals are right at any moment,
 * and a crash leaves nothing behind.
 *
 * Of the status index, only counters that no query reads any longer are removed. The other counts below the floor
 * cancel out, because every answer is a difference of two ranks above the floor.
 */
import { type Runtime, sleep } from "../../runtime.ts";
import { deleteKeys, deleteRange } from "../../store/delete_range.ts";
import { Change, type Kv, LINGER_MS, type Slot } from "../../store/kv.ts";
import { isAnswered } from "../content.ts";
import { hasEnded, isOfMany, type Message } from "../message.ts";
import { messageKeys } from "../rows.ts";
import { BLOCK_SIZE, ledgerOf, messageIds, neighbours, sequence } from "./ledger.ts";
import { containerOf } from "./number_set.ts";
import { forgettable } from "./status_index.ts";

/**
 * Messages removed with the flush of another commit; each makes that flush about 0.1 ms longer. If there was no other
 * commit, a whole block is removed next.
 */
const REMOVED_WITH_EACH = 3;
/** Number of removed messages after which the indexes are tidied. */
const TIDIED_EVERY = 200 * BLOCK_SIZE;

/** Messages removed per account and run, at most, because other sweeps wait for the run to end. */
export const REMOVED_A_RUN = 5_000;

interface RetentionDeps {
  kv: Kv;
  runtime: Pick<Runtime, "clock">;
}

/** Removes ended messages older than `keepMs`, up to `most` per account. Resolves to the number removed. */
export async function sweepHistory(
  { kv, runtime }: RetentionDeps,
  { keepMs, most = REMOVED_A_RUN, signal }: { keepMs: number; most?: number; signal?: AbortSignal },
): Promise<number> {
  const before = runtime.clock.now() - keepMs;
  let removed = 0;
  for await (const { key } of kv.list({ prefix: messageKeys.ledgers() })) {
    removed += await removeHistory({ kv, runtime }, String(key.at(-1)), { before, most, signal });
  }
  return removed;
}

/**
 * Removes the account's messages that were accepted before a time, Unix ms, up to the first one that has not ended, and
 * to about `most`. Resolves to the number removed.
 */
export async function removeHistory(
  { kv, runtime: { clock } }: RetentionDeps,
  accountId: string,
  { before, most, signal }: { before: number; most: number; signal?: AbortSignal | undefined },
): Promise<number> {
  let removed = 0;
  let atOnce = REMOVED_WITH_EACH;
  while (!signal?.aborted && removed < most) {
    const block = await nextBlock(kv, accountId, before);
    let { from, floor } = block;
    while (from < block.through && !signal?.aborted) {
      const through = Math.min(block.through, from + atOnce);
      let wasAlone = false;
      const lingerUntil = sleep(clock, LINGER_MS, signal).then(() => wasAlone = true);
      const version = await kv.commit(await removal(kv, accountId, { ...block, from, floor, through }), {
        lingerUntil,
      });
      // Another process was faster and has removed this batch.
      if (version === null) break;
      floor = { ...floor, version };
      from = through;
      atOnce = wasAlone ? BLOCK_SIZE : REMOVED_WITH_EACH;
    }
    const now = from - block.from;
    removed += now;
    if (now === 0 || removed % TIDIED_EVERY < now) await tidy(kv, accountId, signal);
    if (now === 0) break;
  }
  return removed;
}

/** Messages of one block that may be removed: those with history numbers above `from`, the floor, up to `through`. */
interface Removable {
  floor: Slot<number>;
  from: number;
  through: number;
  messages: readonly Message[];
}

async function nextBlock(kv: Kv, accountId: string, before: number): Promise<Removable> {
  const [floor, ledger] = await Promise.all([
    kv.get(messageKeys.historyFloor(accountId)),
    ledgerOf(kv, accountId),
  ]);
  const from = floor.value ?? 0;
  const to = Math.min(ledger.messages, (Math.floor(from / BLOCK_SIZE) + 1) * BLOCK_SIZE);
  const ids = await messageIds(kv, { accountId, ledger }, sequence(from + 1, to));
  const messages = await neighbours(kv, ids);
  const unreported = await lastOfOpenBulks(kv, messages);
  const kept = messages.find((message) =>
    message.createdAt >= before || !hasEnded(message) || unreported.has(message.historyNumber)
  );
  return { floor, from, through: kept ? kept.historyNumber - 1 : to, messages };
}

/** Returns the history numbers of the last messages of bulks whose end is not reported: it needs the bulk's rows. */
async function lastOfOpenBulks(kv: Kv, messages: readonly Message[]): Promise<Set<number>> {
  const ids = [...new Set(messages.flatMap(({ bulkId }) => bulkId ?? []))];
  const open = await kv.getMany(ids.map(messageKeys.openBulk));
  const bulks = await kv.getMany(ids.filter((_, i) => open[i]!.value).map(messageKeys.bulk));
  return new Set(bulks.flatMap(({ value }) => value ? value.firstHistoryNumber + value.total - 1 : []));
}

async function removal(kv: Kv, accountId: string, { floor, from, through, messages }: Removable): Promise<Change> {
  const change = new Change().check(floor).set(messageKeys.historyFloor(accountId), through);
  for (const message of messages) {
    if (message.historyNumber > from && message.historyNumber <= through) await removeMessage(kv, change, message);
  }
  // The block of ids is removed with the last of its messages.
  const block = Math.floor(from / BLOCK_SIZE);
  if ((block + 1) * BLOCK_SIZE <= through) change.delete(messageKeys.historyBlock(accountId, block));
  return change;
}

async function removeMessage(kv: Kv, change: Change, message: Message): Promise<void> {
  const { id, accountId, sessionId, networkId, bulkId, historyNumber, to, content, deliveredAt, readAt } = message;
  change.delete(messageKeys.message(id)).delete(messageKeys.messageOfNetworkId(sessionId, networkId));
  // A 1:1 chat has at most one receipt of each kind, a group one per participant, which may be too many for one commit.
  if (isOfMany(to)) await deleteRange(kv, { prefix: messageKeys.receiptsOf(id) });
  else {
    if (deliveredAt !== null) change.delete(messageKeys.receipt(id, "delivered", ""));
    if (readAt !== null) change.delete(messageKeys.receipt(id, "read", ""));
  }
  if (isAnswered(content)) await deleteRange(kv, { prefix: messageKeys.votesOf(id) });
  if (bulkId === null) return;
  const { value: bulk } = await kv.get(messageKeys.bulk(bulkId));
  if (!bulk || historyNumber < bulk.firstHistoryNumber + bulk.total - 1) return;
  for (const key of [messageKeys.bulk(bulkId), messageKeys.bulkOfAccount(accountId, bulkId)]) change.delete(key);
  for (const status of ["sent", "failed"] as const) change.delete(messageKeys.bulkCount(bulkId, status));
}

/** Removes index rows that only concern messages below the floor. Idempotent: after a crash it runs again. */
async function tidy(kv: Kv, accountId: string, signal?: AbortSignal): Promise<void> {
  const floor = (await kv.get(messageKeys.historyFloor(accountId))).value ?? 0;
  if (floor === 0) return;
  const filters = messageKeys.historyNumbersOf(accountId);
  const end = messageKeys.historyContainer(accountId, containerOf(floor + 1));
  await deleteRange(kv, { prefix: filters, end }, { signal });
  for (const { level, end } of forgettable(floor)) {
    const prefix = messageKeys.statusCountsOf(accountId, level);
    await deleteRange(kv, { prefix, end: messageKeys.statusCounts(accountId, level, end) }, { signal });
  }
  // The last day that began below the floor stays: it tells on which day the floor lies.
  const days = [];
  for await (const row of kv.list({ prefix: messageKeys.historyDays(accountId) })) {
    if (row.value > floor + 1) break;
    days.push(row.key);
  }
  await deleteKeys(kv, days.slice(0, -1));
}
