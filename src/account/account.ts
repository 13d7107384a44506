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
  /** Its contents are sealed at rest (`choices.ts`); absent: they are not. */
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

/** The accounts as the HTTP floor and the commands use them. Implemented in `accounts.ts`. */
export interface Accounts {
  /** Throws Problem validation_failed for an unknown plan. The key is shown here and by `apiKey` only. */
  create(options: { name: string; plan: string }): Promise<{ account: Account; apiKey: string }>;
  list(): Promise<Account[]>;
  get(accountId: string): Promise<Account | null>;
  /**
   * Who the key belongs to, or null. A rotated key is refused at once, whichever process rotated it; other changes by
   * another process count after at most 1 s.
   */
  authenticate(apiKey: string): Promise<Caller | null>;
  /** The caller, with `keyRow`, of a key that was found valid within the last second; else null. Reads nothing. */
  recall(apiKey: string): Caller | null;
  /** Caller by account id, for work that runs without a request. */
  caller(accountId: string): Promise<Caller | null>;
  /** Whether plans, or which one an account is on, are others than at the last call; the first one answers false. */
  plansChanged(): Promise<boolean>;
  /** Throws Problem not_found, and validation_failed that names each bad entry; nothing is changed then. */
  update(accountId: string, change: AccountChange): Promise<Account>;
  /**
   * Its keys stop working, and the gateway removes it with all that hangs on it, its lines first, now or when it runs
   * next. Throws Problem not_found.
   */
  remove(accountId: string): Promise<void>;
  /** A new key; the previous one stops working at once. */
  rotateKey(accountId: string): Promise<string>;
  /** As `rotateKey`, for whoever holds this key. Throws Problem api_key_invalid when it is not the account's any more. */
  replaceKey(apiKey: string): Promise<string>;
  /** The present key, decrypted, for the operator. */
  apiKey(accountId: string): Promise<string>;
}
