/** The rows of accounts: who they are, their keys, plans, and kept answers. */
import { key, prefix } from "../store/kv.ts";
import type { Account, Scope } from "./account.ts";
import type { Plan, UNLIMITED } from "./plan.ts";

/** An account as it is stored: the key is found by its hash and readable only through the seal (promise 6). */
export interface AccountRecord extends Omit<Account, "optOutWords">, Partial<Pick<Account, "optOutWords">> {
  /** Hex; only the key with this hash is valid. */
  keyHash: string;
  sealedKey: Uint8Array<ArrayBuffer>;
}

/** A further key of an account (`keys.ts`). */
export interface KeyRecord {
  id: string;
  accountId: string;
  name: string;
  scopes: Scope[];
  /** As an account's. */
  allowedIps: string[];
  allowedDomains: string[];
  createdAt: number;
  /** Hex. */
  keyHash: string;
}

/** What was answered under a client's `Idempotency-Key`. */
export interface KeptAnswer {
  fingerprint: string;
  /** JSON, sealed: the answer may hold a webhook's secret (promise 6). */
  answer: Uint8Array<ArrayBuffer>;
  keptAt: number;
}

/** A plan as it is stored: what an older gateway did not know is not limited. */
export type PlanRecord = Omit<Plan, keyof typeof UNLIMITED> & Partial<Plan>;

export const accountKeys = {
  /** An account with its sealed key. */
  account: (accountId: string) => key<AccountRecord>("account", accountId),
  accounts: () => prefix<AccountRecord>("account"),
  /** Whose API key has this SHA-256 (hex): the account's id. One row an account; rotating the key replaces it. */
  apiKey: (keyHash: string) => key<string>("api_key", keyHash),
  /** A further key of the account. */
  accountKey: (accountId: string, keyId: string) => key<KeyRecord>("account_key", accountId, keyId),
  keysOfAccount: (accountId: string) => prefix<KeyRecord>("account_key", accountId),
  /** Which of the further keys has this SHA-256 (hex). */
  keyByHash: (keyHash: string) => key<{ accountId: string; keyId: string }>("account_key_hash", keyHash),
  /** When a further key was last used, Unix ms. */
  keyUsed: (keyId: string) => key<number>("account_key_used", keyId),
  /** How many the account has made: creations check it, so that two at once do not pass the most there may be. */
  keysMade: (accountId: string) => key<number>("account_keys_made", accountId),
  /** The plan catalogue. */
  plan: (name: string) => key<PlanRecord>("plan", name),
  plans: () => prefix<PlanRecord>("plan"),
  /** Counts changes of plans, and of which one an account is on: who waits by a plan looks whether it is another one. */
  planChanges: () => key<bigint>("plan_changes", "count"),
  /** A plan that the operator removed: a default one is not added again. */
  removedPlan: (name: string) => key<true>("removed_plan", name),
  /** An account that is being deleted (`ops/account_removal.ts`). */
  removal: (accountId: string) => key<true>("account_removal", accountId),
  removals: () => prefix<true>("account_removal"),
  /** What was answered under a client's Idempotency-Key, of which the row's key has the hash. */
  answer: (accountId: string, keyHash: string) => key<KeptAnswer>("answer", accountId, keyHash),
  answersOf: (accountId: string) => prefix<KeptAnswer>("answer", accountId),
  answers: () => prefix<KeptAnswer>("answer"),
};
