/** Who a key belongs to: an account, believed for a moment, with its plan. */
import { LRUCache } from "lru-cache";
import { atMost } from "../base/at_most.ts";
import type { Clock } from "../runtime.ts";
import { isRow, type Kv, type Row } from "../store/kv.ts";
import { shareReads } from "../store/layers/shared_reads.ts";
import type { Account, Caller } from "./account.ts";
import { hashApiKey, isApiKeyShaped, sameHash } from "./api_key.ts";
import type { Plans } from "./plans.ts";
import { accountKeys, type AccountRecord } from "./rows.ts";

/** How long an account and its plan are believed: within it changes by another process reach this one. */
const CACHE_MS = 1_000;
/** Accounts, and keys. */
const MOST_REMEMBERED = 10_000;

interface Known {
  caller: Caller;
  /** In hexadecimal, here and below. */
  keyHash: string;
}

/** An account as it was read, or is being read. */
interface Cached {
  readAt: number;
  known: Promise<Known | null>;
  /** Null until it is there. */
  found: Known | null;
}

/** What `Accounts` knows of those who call, each method as its own there. */
export class Callers {
  readonly #kv: Kv;
  readonly #plans: Pick<Plans, "get">;
  readonly #clock: Clock;
  readonly #sharedGet: ReturnType<typeof shareReads>;
  readonly #accounts = new LRUCache<string, Cached>(atMost(MOST_REMEMBERED));
  /** Rows of keys that were valid lately, by the key: whoever calls again is recognised without hashing it. */
  readonly #keyRows = new LRUCache<string, { readAt: number; row: Row<string>; keyHash: string }>(
    atMost(MOST_REMEMBERED),
  );
  /** As many as the last look found; null before it. */
  #planChanges: bigint | null = null;

  constructor({ kv, plans, clock }: { kv: Kv; plans: Pick<Plans, "get">; clock: Clock }) {
    this.#kv = kv;
    this.#plans = plans;
    this.#clock = clock;
    this.#sharedGet = shareReads(kv);
  }

  async authenticate(apiKey: string): Promise<Caller | null> {
    if (!isApiKeyShaped(apiKey)) return null;
    const keyHash = hashApiKey(apiKey).toString("hex");
    // Read every time: a key that was rotated, here or by a command, stops working at once.
    const readAt = this.#clock.now();
    const row = await this.#sharedGet(accountKeys.apiKey(keyHash));
    if (!isRow(row)) {
      this.#keyRows.delete(apiKey);
      return null;
    }
    this.#keyRows.set(apiKey, { readAt, row, keyHash });
    const accountId = row.value;
    const cached = await this.#known(accountId);
    if (cached && sameHash(cached.keyHash, keyHash)) return cached.caller;
    // The key is newer than what is remembered of its account.
    this.#accounts.delete(accountId);
    const fresh = await this.#known(accountId);
    return fresh && sameHash(fresh.keyHash, keyHash) ? fresh.caller : null;
  }

  recall(apiKey: string): Caller | null {
    const kept = this.#keyRows.get(apiKey);
    if (!kept) return null;
    if (!this.#isFresh(kept)) {
      this.#keyRows.delete(apiKey);
      return null;
    }
    const of = this.#accounts.get(kept.row.value);
    if (!of?.found || !this.#isFresh(of)) return null;
    const { caller, keyHash } = of.found;
    // Both are of this process: nobody outside can try what is compared here.
    return keyHash === kept.keyHash ? { ...caller, keyRow: kept.row } : null;
  }

  async caller(accountId: string): Promise<Caller | null> {
    return (await this.#known(accountId))?.caller ?? null;
  }

  async plansChanged(): Promise<boolean> {
    const { value } = await this.#kv.get(accountKeys.planChanges());
    const [before, now] = [this.#planChanges, value ?? 0n];
    this.#planChanges = now;
    if (before === null || before === now) return false;
    this.#accounts.clear();
    return true;
  }

  /** The account was changed here. */
  forget(accountId: string): void {
    this.#accounts.delete(accountId);
    for (const [apiKey, { row }] of this.#keyRows) if (row.value === accountId) this.#keyRows.delete(apiKey);
  }

  #isFresh({ readAt }: { readAt: number }): boolean {
    return Math.abs(this.#clock.now() - readAt) < CACHE_MS;
  }

  #known(accountId: string): Promise<Known | null> {
    const kept = this.#accounts.get(accountId);
    if (kept && this.#isFresh(kept)) return kept.known;
    const fresh: Cached = { readAt: this.#clock.now(), known: this.#read(accountId), found: null };
    this.#accounts.set(accountId, fresh);
    void this.#keep(accountId, fresh);
    return fresh.known;
  }

  async #read(accountId: string): Promise<Known | null> {
    const { value } = await this.#kv.get(accountKeys.account(accountId));
    if (value === null) return null;
    const plan = await this.#plans.get(value.plan);
    if (plan === null) throw new Error(`account ${accountId} is on plan "${value.plan}", which does not exist`);
    return { caller: { account: publicPart(value), plan }, keyHash: value.keyHash };
  }

  /** A failed read must not be remembered, nor an account that is not there. */
  async #keep(accountId: string, fresh: Cached): Promise<void> {
    fresh.found = await fresh.known.catch(() => null);
    if (fresh.found === null && this.#accounts.get(accountId) === fresh) this.#accounts.delete(accountId);
  }
}

/** The account without its key. */
export function publicPart(record: AccountRecord): Account {
  const { keyHash: _, sealedKey: __, ...account } = record;
  // An older gateway knew no words.
  return { ...account, optOutWords: account.optOutWords ?? [] };
}
