/**
 * Removes accounts that are being deleted. Their lines are unlinked first, by the lines' owners; then everything that
 * belongs to the account is removed, its own row last. Each step can be repeated, so a crash leaves nothing behind.
 */
import { accountKeys } from "../account/rows.ts";
import { chatKeys } from "../chat/rows.ts";
import { erasureKeys } from "./rows.ts";
import { eventKeys } from "../event/rows.ts";
import { endLines } from "../line/account_lines.ts";
import { lineKeys } from "../line/rows.ts";
import { mediaKeys } from "../media/rows.ts";
import type { MediaStore } from "../media/store.ts";
import { REMOVED_A_RUN, removeHistory } from "../message/history/retention.ts";
import { messageKeys } from "../message/rows.ts";
import type { Runtime } from "../runtime.ts";
import { deleteKeys, deleteRange } from "../store/delete_range.ts";
import type { Key, Kv } from "../store/kv.ts";
import { keysBeside } from "../verification/ends.ts";
import { verificationKeys } from "../verification/rows.ts";
import { webhookKeys } from "../webhook/rows.ts";
import { purgeWebhook } from "../webhook/sweep.ts";

interface RemovalDeps {
  kv: Kv;
  runtime: Pick<Runtime, "clock" | "log">;
  media: Pick<MediaStore, "remove">;
  /** Removes the account's rows of the floors above. */
  removeAbove(accountId: string): Promise<void>;
}

/** Continues the removal of each account that is being deleted; resolves to the number of those that are removed. */
export async function removeAccounts(deps: RemovalDeps, signal?: AbortSignal): Promise<number> {
  const { kv, runtime: { log } } = deps;
  let removed = 0;
  for await (const { key } of kv.list({ prefix: accountKeys.removals() })) {
    const accountId = String(key.at(-1));
    try {
      if (await removeAccount(deps, accountId, signal)) removed++;
    } catch (error) {
      // Continues with the other accounts; the next run tries this one again.
      log.warn({ accountId, error: String(error) }, "an account could not be removed yet");
    }
    if (signal?.aborted) break;
  }
  return removed;
}

/** Resolves to whether the account is removed completely. */
async function removeAccount(deps: RemovalDeps, accountId: string, signal?: AbortSignal): Promise<boolean> {
  const { kv, runtime } = deps;
  if (await endLines(kv, accountId) > 0) return false; // the supervisor unlinks them
  await removeFiles(deps, accountId);
  await closeBulks(kv, accountId);
  const most = REMOVED_A_RUN;
  if (await removeHistory({ kv, runtime }, accountId, { before: Infinity, most, signal }) >= most) return false;
  if (signal?.aborted) return false;
  await deps.removeAbove(accountId);
  await removeRows(kv, accountId);
  return true;
}

/** Ends the wait for bulks to be reported as finished: their messages have ended, and nobody is left to be told. */
async function closeBulks(kv: Kv, accountId: string): Promise<void> {
  const bulks = kv.list({ prefix: messageKeys.bulksOfAccount(accountId) });
  await deleteKeys(kv, await Array.fromAsync(bulks, ({ key }) => messageKeys.openBulk(String(key.at(-1)))));
}

/** Removes each file before its row, and files before all else: on a full disk the store takes no commit until then. */
async function removeFiles({ kv, media }: RemovalDeps, accountId: string): Promise<void> {
  async function* rowsOfRemoved(): AsyncGenerator<Key> {
    for await (const { key, value: { id, accountId: owner, expiresAt } } of kv.list({ prefix: mediaKeys.files() })) {
      if (owner !== accountId) continue;
      await media.remove(id);
      if (expiresAt !== null) yield mediaKeys.fileEnd(expiresAt, id);
      yield key;
    }
  }
  await deleteKeys(kv, rowsOfRemoved());
}

async function removeRows(kv: Kv, accountId: string): Promise<void> {
  for await (const { key, value } of kv.list({ prefix: webhookKeys.webhooksOfAccount(accountId) })) {
    await deleteKeys(kv, [key]);
    await purgeWebhook(kv, value.id);
  }
  for await (const { key, value } of kv.list({ prefix: accountKeys.keysOfAccount(accountId) })) {
    await deleteKeys(kv, [accountKeys.keyByHash(value.keyHash), accountKeys.keyUsed(value.id), key]);
  }
  for await (const { key, value } of kv.list({ prefix: verificationKeys.ofAccount(accountId) })) {
    await deleteKeys(kv, [...keysBeside(value), key]);
  }
  const families = [
    eventKeys.events(accountId),
    eventKeys.chatEventsOfAccount(accountId),
    messageKeys.optOuts(accountId),
    messageKeys.optedOutChats(accountId),
    messageKeys.bulksOfAccount(accountId),
    messageKeys.refunds(accountId),
    messageKeys.templates(accountId),
    messageKeys.templateVersions(accountId),
    messageKeys.historyDays(accountId),
    messageKeys.historyNumbersOf(accountId),
    messageKeys.historyBlocks(accountId),
    ...[0, 1, 2].map((level) => messageKeys.statusCountsOf(accountId, level)),
    accountKeys.answersOf(accountId),
    lineKeys.linesOfAccount(accountId),
    erasureKeys.erasuresOf(accountId),
    erasureKeys.doneOf(accountId),
  ];
  for (const prefix of families) await deleteRange(kv, { prefix });
  await deleteKeys(kv, [
    eventKeys.eventOrder(accountId),
    eventKeys.eventCount(accountId),
    eventKeys.eventBytes(accountId),
    eventKeys.eventFloor(accountId),
    webhookKeys.webhooksMade(accountId),
    lineKeys.lineCount(accountId),
    messageKeys.historyFloor(accountId),
    messageKeys.historyIndexed(accountId),
    messageKeys.ledger(accountId),
    messageKeys.templatesMade(accountId),
    verificationKeys.open(accountId),
    accountKeys.keysMade(accountId),
    accountKeys.account(accountId),
    chatKeys.backfill(accountId),
    accountKeys.removal(accountId),
  ]);
}
