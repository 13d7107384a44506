/**
 * Bulks: one that is too large for a commit is staged over several and published by one (promise 1: all or none); an
 * accepted one counts its messages that have ended, and reports when all have.
 *
 * Staged messages are invisible: the ledger does not count them, and queue rows that name a bulk count only once the
 * bulk's row exists. What a crash leaves is removed at boot, or by a sweep if other processes may be staging bulks.
 */
import { notFound } from "../errors.ts";
import type { EventLog } from "../event/event_log.ts";
import { Change, type Kv, retryOnConflict, type Row, StoreError } from "../store/kv.ts";
import { commitSized, loadOf } from "./send_command.ts";
import { ledgerOf, messageIds, sequence } from "./history/ledger.ts";
import type { Message } from "./message.ts";
import { addToChats, enqueue, removeQueued } from "./queue/place.ts";
import type { SessionName } from "./receipts.ts";
import { type Bulk, messageKeys, type StagedBulk } from "./rows.ts";

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
export async function countsOf(kv: Kv, bulkId: string): Promise<{ sent: number; failed: number }> {
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

/** Messages per commit, at most: a send of another account waits for at most one such commit. */
const STAGED_AT_ONCE = 30;

/**
 * Adds the row that announces the staging of these messages, which must be all of the bulk. With the version of the
 * commit, the result is that row.
 */
export function stage(change: Change, bulkId: string, messages: readonly Message[]): Omit<Row<StagedBulk>, "version"> {
  const value = { firstMessageId: messages[0]!.id, lastMessageId: messages.at(-1)!.id };
  const key = messageKeys.stagedBulk(bulkId);
  change.set(key, value);
  return { key, value };
}

/**
 * Writes the messages of a staged bulk. Throws StoreError, also if its removal has begun: what was written after that
 * would never be removed.
 */
export async function writeStaged(kv: Kv, staged: Row<StagedBulk>, messages: readonly Message[]): Promise<void> {
  for (const batch of inCommits(messages)) {
    const change = new Change().check(staged);
    enqueue(change, batch);
    // Others may be accepted while this bulk is staged, with later positions.
    addToChats(change, batch);
    if (await kv.commit(change, { background: true }) !== null) continue;
    throw new StoreError("unavailable", "a staged bulk was removed while it was written");
  }
}

/** Adds to the commit that publishes the bulk the end of its staging, with a check that its removal has not begun. */
export function publishStaged(change: Change, staged: Row<StagedBulk>): void {
  change.check(staged).delete(staged.key);
}

/** Removes the staged messages of the bulk. Does nothing if it was published. */
export async function removeStaged(kv: Kv, bulkId: string): Promise<void> {
  const slot = await kv.get(messageKeys.stagedBulk(bulkId));
  if (slot.value === null) return;
  // Gives the row a new version, so that a concurrent commit that publishes the bulk fails at its check.
  if (!await kv.commit(new Change().check(slot).set(slot.key, slot.value))) return removeStaged(kv, bulkId);

  const range = {
    prefix: messageKeys.messages(),
    start: messageKeys.message(slot.value.firstMessageId),
    end: messageKeys.message(`${slot.value.lastMessageId}~`),
  };
  const left: Message[] = [];
  for await (const row of kv.list(range)) if (row.value.bulkId === bulkId) left.push(row.value);
  for (const batch of inCommits(left)) {
    const change = new Change();
    for (const message of batch) removeQueued(change, message);
    await kv.commit(change, { background: true });
  }
  await kv.commit(new Change().delete(slot.key));
}

/** Removes all staged bulks, which crashes left. Only for boot, when none can be in progress. */
export async function removeAllStaged(kv: Kv): Promise<void> {
  for await (const row of kv.list({ prefix: messageKeys.stagedBulks() })) {
    await removeStaged(kv, String(row.key.at(-1)));
  }
}

/**
 * Returns a sweep that removes staged bulks which crashes of any process left: those that have not changed since its
 * last run. Runs must be further apart than staging any bulk takes. Each run resolves to the number of bulks removed.
 */
export function makeSweepStaged(kv: Kv): () => Promise<number> {
  let before = new Map<string, string>();
  return async () => {
    const now = new Map<string, string>();
    let removed = 0;
    for await (const { key, version } of kv.list({ prefix: messageKeys.stagedBulks() })) {
      const bulkId = String(key.at(-1));
      if (before.get(bulkId) !== version) now.set(bulkId, version);
      else {
        await removeStaged(kv, bulkId);
        removed++;
      }
    }
    before = now;
    return removed;
  };
}

function inCommits(messages: readonly Message[]): Iterable<Message[]> {
  return commitSized(messages, (message) => loadOf([message]), STAGED_AT_ONCE);
}
