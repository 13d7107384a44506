/** Accounts: who may use the gateway, on which plan, from where. */
import type { Row } from "../store/kv.ts";
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
  /** Whoever writes one of them to a line is never written to again. */
  optOutWords: string[];
  createdAt: number;
  /** Its contents are sealed at rest (`sealed_accounts.ts`); absent: they are not. */
  sealed?: boolean;
}

/** What a key may do: send messages, read, or change anything else. */
export type Scope = "send" | "read" | "manage";

/** An account with the plan that it is on: what one request needs to know of its caller. */
export interface Caller {
  account: Account;
  plan: Plan;
  /** The key, where it is not the account's own, which has every scope. */
  key?: { id: string; scopes: readonly Scope[]; allowedIps: string[]; allowedDomains: string[] };
  /** What made the key valid, where that was remembered and not read: the commit that serves the caller checks it. */
  keyRow?: Row<string>;
}

/** What may be changed of an account; what is left out stays. */
export type AccountChange = Partial<
  Pick<Account, "plan" | "active" | "expiresAt" | "allowedIps" | "allowedDomains" | "optOutWords" | "name" | "sealed">
>;
