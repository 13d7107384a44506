/**
 * Quota that is given back when a message is cancelled. The ledger, which holds the counts, is rewritten by every accept:
 * so cancelled messages are counted beside it, without a conflict, and what was counted is settled in one commit.
 */
import { utcDay } from "../account/quota.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import type { Message } from "./message.ts";
import { messageKeys } from "./rows.ts";

/** Adds to the commit that cancels the message that its quota is to be given back. */
export function giveBack(change: Change, { accountId, createdAt }: Message): void {
  change.add(messageKeys.refund(accountId, utcDay(createdAt)), 1);
}

/** Gives back what was cancelled: to the day and the month of the accept, as far as they still run. */
export async function settleRefunds(kv: Kv, accountId: string): Promise<void> {
  await retryOnConflict(kv, async () => {
    const change = new Change();
    const ledger = await kv.get(messageKeys.ledger(accountId));
    if (ledger.value === null) return { change, result: null };
    let usage = ledger.value.usage;
    for await (const row of kv.list({ prefix: messageKeys.refunds(accountId) })) {
      const [day, count] = [String(row.key.at(-1)), Number(row.value)];
      if (count === 0) {
        // Of a day that is over little comes, but some: what was scheduled then is cancelled later.
        if (day < usage.day && change.checks.length < kv.mostChecks - 1) change.check(row).delete(row.key);
        continue;
      }
      change.add(messageKeys.refund(accountId, day), -count);
      usage = {
        ...usage,
        daily: day === usage.day ? Math.max(0, usage.daily - count) : usage.daily,
        monthly: day.slice(0, 7) === usage.month ? Math.max(0, usage.monthly - count) : usage.monthly,
      };
    }
    if (change.mutations.length === 0) return { change, result: null };
    change.check(ledger).set(ledger.key, { ...ledger.value, usage });
    return { change, result: null };
  });
}

/** Gives back what a crash left between a cancelled message and its quota; resolves to of how many accounts that was. */
export async function settleAllRefunds(kv: Kv): Promise<number> {
  const accountIds = new Set<string>();
  for await (const { key, value } of kv.list({ prefix: messageKeys.allRefunds() })) {
    if (value !== 0n) accountIds.add(String(key[1]));
  }
  for (const accountId of accountIds) await settleRefunds(kv, accountId);
  return accountIds.size;
}
