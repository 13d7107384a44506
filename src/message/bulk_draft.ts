/**
 * A bulk that is too large for one commit is written as a draft over several, and published by one (promise 1: all or
 * none). Nothing shows a draft: no history number, no quota, and queue rows that name a bulk count only with its row.
 * What a crash leaves of a draft is removed at boot.
 */
import { type BulkDraft, messageKeys } from "./rows.ts";
import { Change, type Kv, type Row, StoreError } from "../store/kv.ts";
import type { Message } from "./message.ts";
import { addMessages, commitSized, loadOf, removeMessage } from "./message_rows.ts";

/** Adds to the change that these messages, which must be all of the bulk, are going to be written as a draft. */
export function beginDraft(change: Change, bulkId: string, messages: readonly Message[]): void {
  change.set(messageKeys.bulkDraft(bulkId), { firstMessageId: messages[0]!.id, lastMessageId: messages.at(-1)!.id });
}

/** Writes the rows of a draft that was begun; the commit that publishes it must check the answer (`publishDraft`). */
export async function writeDraft(kv: Kv, bulkId: string, messages: readonly Message[]): Promise<Row<BulkDraft>> {
  for (const piece of commitSized(messages, (message) => loadOf([message.content]))) {
    const change = new Change();
    addMessages(change, piece);
    await kv.commit(change);
  }
  const slot = await kv.get(messageKeys.bulkDraft(bulkId));
  if (slot.value === null) throw new StoreError("unavailable", "the draft of a bulk was removed while it was written");
  return slot as Row<BulkDraft>;
}

/** Adds to the change that makes the bulk count that the draft is over, unless somebody began to remove it. */
export function publishDraft(change: Change, draft: Row<BulkDraft>): void {
  change.check(draft).delete(draft.key);
}

/** Removes what a draft has written; one that was published is left alone. */
export async function removeDraft(kv: Kv, bulkId: string): Promise<void> {
  const slot = await kv.get(messageKeys.bulkDraft(bulkId));
  if (slot.value === null) return;
  // Written anew, so that whoever is still about to publish it fails at its check.
  if (!await kv.commit(new Change().check(slot).set(slot.key, slot.value))) return removeDraft(kv, bulkId);

  const range = {
    prefix: messageKeys.messages(),
    start: messageKeys.message(slot.value.firstMessageId),
    end: messageKeys.message(`${slot.value.lastMessageId}~`),
  };
  const left: Message[] = [];
  for await (const row of kv.list(range)) if (row.value.bulkId === bulkId) left.push(row.value);
  for (const piece of commitSized(left, (message) => loadOf([message.content]))) {
    const change = new Change();
    for (const message of piece) removeMessage(change, message);
    await kv.commit(change);
  }
  await kv.commit(new Change().delete(slot.key));
}

/** Removes what crashes left; at boot. */
export async function removeDrafts(kv: Kv): Promise<void> {
  for await (const row of kv.list({ prefix: messageKeys.bulkDrafts() })) await removeDraft(kv, String(row.key.at(-1)));
}
