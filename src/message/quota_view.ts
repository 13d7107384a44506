/** What an account has used of its quota and what is left, as the next accept would count it. */
import type { Caller } from "../account/account.ts";
import { NO_USAGE, type QuotaLeft, quotaLeft, usageAt } from "../account/quota.ts";
import type { Clock } from "../runtime.ts";
import { messageKeys } from "./rows.ts";
import type { Kv } from "../store/kv.ts";

export interface QuotaState {
  /** Messages accepted this UTC day and this UTC month. */
  used: { daily: number; monthly: number };
  remaining: QuotaLeft;
}

export type QuotaView = (caller: Caller) => Promise<QuotaState>;

export function makeQuotaView({ kv, clock }: { kv: Kv; clock: Clock }): QuotaView {
  return async ({ account, plan }) => {
    const { value: ledger } = await kv.get(messageKeys.ledger(account.id));
    const usage = usageAt(ledger?.usage ?? NO_USAGE, clock.now());
    return { used: { daily: usage.daily, monthly: usage.monthly }, remaining: quotaLeft(plan, usage) };
  };
}
