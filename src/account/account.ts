/** Accounts: who may use the gateway, on which plan, from where. */
import type { Plan } from "./plan.ts";

export interface Account {
  id: string;
  name: string;
  plan: string;
  active: boolean;
  /** When the subscription ends, Unix ms; null never. */
  expiresAt: number | null;
  /** Addresses and CIDRs that may use the key; empty is any. */
  allowedIps: string[];
  /** Host names (subdomains included) whose pages may use the key; empty is any. */
  allowedDomains: string[];
  createdAt: number;
}

/** An account with the plan that it is on: what one request needs to know of its caller. */
export interface Caller {
  account: Account;
  plan: Plan;
}

/** The accounts as the HTTP floor and the commands use them. Implemented in `accounts.ts`. */
export interface Accounts {
  /** Throws Problem validation_failed for an unknown plan. The key is shown here and by `apiKey` only. */
  create(options: { name: string; plan: string }): Promise<{ account: Account; apiKey: string }>;
  list(): Promise<Account[]>;
  get(accountId: string): Promise<Account | null>;
  /** Who the key belongs to, or null. Cached for at most 2 s, so that changes by command reach a running gateway. */
  authenticate(apiKey: string): Promise<Caller | null>;
  /** Caller by account id, for work that runs without a request. */
  caller(accountId: string): Promise<Caller | null>;
  update(
    accountId: string,
    change: Partial<Pick<Account, "plan" | "active" | "expiresAt" | "allowedIps" | "allowedDomains" | "name">>,
  ): Promise<Account>;
  /** A new key; the previous one stops working at once. */
  rotateKey(accountId: string): Promise<string>;
  /** The present key, decrypted, for the panel. */
  apiKey(accountId: string): Promise<string>;
}
