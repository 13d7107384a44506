/** Accounts: who may use the gateway, on which plan, from where. */
import type { Row } from "../store/kv.ts";
import type { Plan } from "./plan.ts";

export interface Account {
  id: string;
  name: string;
  plan: string;
  active: boolean;
  /** When the subscription ends, Unix ms; null: never. */
  expiresAt: number | null;
  /** Addresses and CIDRs that may use the key; empty: any. */
  allowedIps: string[];
  /** Host names (subdomains included) whose pages may use the key; empty: any. */
  allowedDomains: string[];
  /** A person who sends one of these words to a line has opted out. */
  optOutWords: string[];
  createdAt: number;
  /** Whether contents are sealed at rest (`sealed_accounts.ts`); absent: no. */
  sealed?: boolean;
}

/** What a key may do: send messages, read, or manage everything else. */
export type Scope = "send" | "read" | "manage";

/** An account with its plan: what a request needs to know about its caller. */
export interface Caller {
  account: Account;
  plan: Plan;
  /** The key used, unless it is the account's own, which has every scope. */
  key?: { id: string; scopes: readonly Scope[]; allowedIps: string[]; allowedDomains: string[] };
  /** The key's row, if it came from memory: the commit that serves the caller must check it. */
  keyRow?: Row<string>;
}

/** A change of an account; omitted fields stay as they are. */
export type AccountChange = Partial<
  Pick<Account, "plan" | "active" | "expiresAt" | "allowedIps" | "allowedDomains" | "optOutWords" | "name" | "sealed">
>;
