/** The rows of accounts: records, keys, plans, and answers kept for idempotency. */
import { key, prefix } from "../store/kv.ts";
import type { Account, Scope } from "./account.ts";
import type { Plan, UNLIMITED } from "./plan.ts";

/** A stored account. The key is found by its hash and readable only with the secret key (promise 6). */
export interface AccountRecord
  extends Omit<Account, "optOutWords" | "country">, Partial<Pick<Account, "optOutWords" | "country">> {
  /** Hex; only the key with this hash is valid. */
  keyHash: string;
  sealedKey: Uint8Array<ArrayBuffer>;
}

/** An additional key of an account (`keys.ts`). */
export interface KeyRecord {
  id: string;
  accountId: string;
  name: string;
  scopes: Scope[];
  /** As those of an account. */
  allowedIps: string[];
  allowedDomains: string[];
  createdAt: number;
  /** Hex. */
  keyHash: string;
}

/** The answer kept under a client's `Idempotency-Key`, or the claim of the process that works on it. */
export interface KeptAnswer {
  fingerprint: string;
  /** JSON, sealed: the answer may hold a webhook's secret (promise 6). Null while there is only a claim. */
  answer: Uint8Array<ArrayBuffer> | null;
  keptAt: number;
}

/** A stored plan. Limits unknown to the version that wrote it are absent and do not apply. */
export type PlanRecord = Omit<Plan, keyof typeof UNLIMITED> & Partial<Plan>;

export const accountKeys = {
  /** An account with its sealed key. */
  account: (accountId: string) => key<AccountRecord>("account", accountId),
  accounts: () => prefix<AccountRecord>("account"),
  /** The id of the account whose key has this SHA-256 (hex). One row per account; rotating the key replaces it. */
  apiKey: (keyHash: string) => key<string>("api_key", keyHash),
  /** An additional key of the account. */
  accountKey: (accountId: string, keyId: string) => key<KeyRecord>("account_key", accountId, keyId),
  keysOfAccount: (accountId: string) => prefix<KeyRecord>("account_key", accountId),
  /** The additional key with this SHA-256 (hex). */
  keyByHash: (keyHash: string) => key<{ accountId: string; keyId: string }>("account_key_hash", keyHash),
  /** When an additional key was last used, Unix ms. */
  keyUsed: (keyId: string) => key<number>("account_key_used", keyId),
  /** How many keys the account has ever created; checked by every creation, so that the limit holds. */
  keysMade: (accountId: string) => key<number>("account_keys_made", accountId),
  /** The plan catalogue. */
  plan: (name: string) => key<PlanRecord>("plan", name),
  plans: () => prefix<PlanRecord>("plan"),
  /** Counts changes of plans and assignments to accounts; whatever depends on a plan watches it. */
  planChanges: () => key<bigint>("plan_changes", "count"),
  /** Marks a plan that the operator removed, so that a default plan is not added again. */
  removedPlan: (name: string) => key<true>("removed_plan", name),
  /** An account that is being deleted (`erasure/account_removal.ts`). */
  removal: (accountId: string) => key<true>("account_removal", accountId),
  removals: () => prefix<true>("account_removal"),
  /** The answer kept under a client's Idempotency-Key, by the key's hash. */
  answer: (accountId: string, keyHash: string) => key<KeptAnswer>("answer", accountId, keyHash),
  answersOf: (accountId: string) => prefix<KeptAnswer>("answer", accountId),
  answers: () => prefix<KeptAnswer>("answer"),
};
