/**
 * Figures that need no read of messages: how many wait, and what an account's quota leaves.
 *
 * The ledger, which every accept rewrites, holds the counts of the quota. To avoid conflicts with it, cancelled messages
 * are counted in rows of their own, which are then settled with the ledger in one commit.
 */
import type { Caller } from "../../account/account.ts";
import { NO_USAGE, type QuotaLeft, quotaLeft, usageAt, utcDay } from "../../account/quota.ts";
import type { Clock } from "../../runtime.ts";
import { Change, type Kv, retryOnConflict } from "../../store/kv.ts";
import type { Message } from "../message.ts";
import { messageKeys } from "../rows.ts";
import { EndedStretches, StatusReader } from "./status_index.ts";

/**
 * Resolves to how many messages of all accounts are queued. Reads the status index, with two small reads per account.
 */
export type QueuedCount = () => Promise<number>;

export function makeQueuedCount(kv: Kv): QueuedCount {
  const ended = new EndedStretches();
  return async () => {
    let queued = 0;
    for await (const { key, value: { messages } } of kv.list({ prefix: messageKeys.ledgers() })) {
      const reader = new StatusReader({ kv, ended }, { accountId: String(key.at(-1)), status: "queued", messages });
      queued += await reader.rank(messages);
    }
    return queued;
  };
}

interface QuotaState {
  /** Messages accepted this UTC day and this UTC month. */
  used: { daily: number; monthly: number };
  remaining: QuotaLeft;
}

/** Resolves to the used and remaining quota of the account, as the next accept would count it. */
export type QuotaView = (caller: Caller) => Promise<QuotaState>;

export function makeQuotaView({ kv, clock }: { kv: Kv; clock: Clock }): QuotaView {
  return async ({ account, plan }) => {
    const { value: ledger } = await kv.get(messageKeys.ledger(account.id));
    const usage = usageAt(ledger?.usage ?? NO_USAGE, clock.now());
    return { used: { daily: usage.daily, monthly: usage.monthly }, remaining: quotaLeft(plan, usage) };
  };
}

/** Adds the refund of the message's quota, if it was charged here, to the commit that cancels it. */
export function giveBack(change: Change, { accountId, createdAt, charged, chargedDay }: Message): void {
  if (charged !== false) change.add(messageKeys.refund(accountId, chargedDay ?? utcDay(createdAt)), 1);
}

/**
 * Settles the account's refunds: they reduce the use of the day and month of the accept, if these are still current.
 */
export async function settleRefunds(kv: Kv, accountId: string): Promise<void> {
  await retryOnConflict(kv, async () => {
    const change = new Change();
    const ledger = await kv.get(messageKeys.ledger(accountId));
    if (ledger.value === null) return { change, result: null };
    let usage = ledger.value.usage;
    for await (const row of kv.list({ prefix: messageKeys.refunds(accountId) })) {
      const [day, count] = [String(row.key.at(-1)), Number(row.value)];
      if (count === 0) {
        // Checked, because a past day may still get refunds: messages scheduled then can be cancelled later.
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

/** Settles refunds that a crash left open; resolves to the number of accounts concerned. */
export async function settleAllRefunds(kv: Kv): Promise<number> {
  const accountIds = new Set<string>();
  for await (const { key, value } of kv.list({ prefix: messageKeys.allRefunds() })) {
    if (value !== 0n) accountIds.add(String(key[1]));
  }
  for (const accountId of accountIds) await settleRefunds(kv, accountId);
  return accountIds.size;
}
