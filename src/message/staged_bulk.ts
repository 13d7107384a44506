/**
 * Stages a bulk that is too large for one commit over several commits, and publishes it with one (promise 1: all or
 * none). Staged messages are invisible: the ledger does not count them, and queue rows that name a bulk count only once
 * the bulk's row exists. What a crash leaves is removed at boot, or by a sweep if other processes may be staging bulks.
 */
import { Change, isRow, type Kv, type Row, StoreError } from "../store/kv.ts";
import { commitSized, loadOf } from "./commit_size.ts";
import { enqueue, removeQueued } from "./queue/enqueue.ts";
import type { Message } from "./message.ts";
import { messageKeys, type StagedBulk } from "./rows.ts";

/** Messages per commit, at most: a send of another account waits for at most one such commit. */
const STAGED_AT_ONCE = 30;

/** Adds the row that announces the staging of these messages, which must be all of the bulk. */
export function stage(change: Change, bulkId: string, messages: readonly Message[]): void {
  change.set(messageKeys.stagedBulk(bulkId), { firstMessageId: messages[0]!.id, lastMessageId: messages.at(-1)!.id });
}

/**
 * Writes the messages of a staged bulk. Resolves to the row that the publishing commit must check (`publishStaged`).
 */
export async function writeStaged(kv: Kv, bulkId: string, messages: readonly Message[]): Promise<Row<StagedBulk>> {
  for (const piece of inCommits(messages)) {
    const change = new Change();
    enqueue(change, piece);
    await kv.commit(change, { background: true });
  }
  const slot = await kv.get(messageKeys.stagedBulk(bulkId));
  if (!isRow(slot)) throw new StoreError("unavailable", "a staged bulk was removed while it was written");
  return slot;
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
  for (const piece of inCommits(left)) {
    const change = new Change();
    for (const message of piece) removeQueued(change, message);
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
