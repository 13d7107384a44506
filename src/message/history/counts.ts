/** Figures that need no read of messages: how many wait, and what an account's quota leaves. */
import type { Caller } from "../../account/account.ts";
import { NO_USAGE, type QuotaLeft, quotaLeft, usageAt } from "../../account/quota.ts";
import type { Clock } from "../../runtime.ts";
import type { Kv } from "../../store/kv.ts";
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
