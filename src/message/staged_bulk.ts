/**
 * A bulk that is too large for one commit is staged over several, and published by one (promise 1: all or none).
 * Nothing shows what is staged: no history number, no quota, and queue rows that name a bulk count only with its row.
 * What a crash leaves is removed at boot, or by a sweep where other processes may be at work.
 */
import { Change, isRow, type Kv, type Row, StoreError } from "../store/kv.ts";
import { commitSized, loadOf } from "./commit_size.ts";
import { enqueue, removeQueued } from "./queue/enqueue.ts";
import type { Message } from "./message.ts";
import { messageKeys, type StagedBulk } from "./rows.ts";

/** Messages of one commit, at most: a send of another account waits for no more than the one that is being written. */
const STAGED_AT_ONCE = 30;

/** Adds to the change that these messages, which must be all of the bulk, are going to be staged. */
export function stage(change: Change, bulkId: string, messages: readonly Message[]): void {
  change.set(messageKeys.stagedBulk(bulkId), { firstMessageId: messages[0]!.id, lastMessageId: messages.at(-1)!.id });
}

/** Writes the rows of a bulk that is staged; the commit that publishes it must check the answer (`publishStaged`). */
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

/** Adds to the change that makes the bulk count that it is staged no more, unless somebody began to remove it. */
export function publishStaged(change: Change, staged: Row<StagedBulk>): void {
  change.check(staged).delete(staged.key);
}

/** Removes what was staged of the bulk; one that was published is left alone. */
export async function removeStaged(kv: Kv, bulkId: string): Promise<void> {
  const slot = await kv.get(messageKeys.stagedBulk(bulkId));
  if (slot.value === null) return;
  // A new version of the row: whoever is about to publish the bulk fails at its check.
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

/** Removes what crashes left; at boot. */
export async function removeAllStaged(kv: Kv): Promise<void> {
  for await (const row of kv.list({ prefix: messageKeys.stagedBulks() })) {
    await removeStaged(kv, String(row.key.at(-1)));
  }
}

/**
 * Removes what crashes of any process left: what has not moved since the last run, which has to lie longer back than any
 * bulk takes. Resolves to how many.
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
