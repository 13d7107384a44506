/** Accounts, cached for a moment: the one that a key belongs to, with its plan, and which have their contents sealed. */
import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import { atMost } from "../base/at_most.ts";
import type { Clock } from "../runtime.ts";
import { isRow, type Kv, type Row } from "../store/kv.ts";
import { shareReads } from "../store/layers/shared_reads.ts";
import type { Account, Caller } from "./account.ts";
import { hashApiKey, isApiKeyShaped } from "./api_key.ts";
import type { Plans } from "./plans.ts";
import { accountKeys, type AccountRecord } from "./rows.ts";

/** How long an account and its plan are cached; changes by another process take effect within this time. */
export const CACHE_MS = 1_000;
/** Most accounts, and most keys, in memory. */
const MOST_REMEMBERED = 10_000;

interface Known {
  caller: Caller;
  /** Hexadecimal, here and below. */
  keyHash: string;
}

/** An account that was read or is being read. */
interface Cached {
  known: Promise<Known | null>;
  /** Null until it has been read. */
  found: Known | null;
}

export class Callers {
  readonly #kv: Kv;
  readonly #plans: Pick<Plans, "get">;
  readonly #clock: Clock;
  readonly #sharedGet: ReturnType<typeof shareReads>;
  readonly #accounts: LRUCache<string, Cached>;
  /** Rows of recently valid keys, by key, so that repeated calls need no hashing. */
  readonly #keyRows: LRUCache<string, { row: Row<string>; keyHash: string }>;
  /** The counter of plan changes at the last call; null before the first. */
  #planChanges: bigint | null = null;

  constructor({ kv, plans, clock }: { kv: Kv; plans: Pick<Plans, "get">; clock: Clock }) {
    this.#kv = kv;
    this.#plans = plans;
    this.#clock = clock;
    this.#sharedGet = shareReads(kv);
    this.#accounts = new LRUCache(atMost(MOST_REMEMBERED, { forMs: CACHE_MS, clock }));
    this.#keyRows = new LRUCache(atMost(MOST_REMEMBERED, { forMs: CACHE_MS, clock }));
  }

  /**
   * Resolves to the caller that the key belongs to, or null. A rotated key is refused at once, whichever process
   * rotated it; other changes by another process take effect within 1 s.
   */
  async authenticate(apiKey: string): Promise<Caller | null> {
    if (!isApiKeyShaped(apiKey)) return null;
    const keyHash = hashApiKey(apiKey);
    // Read every time, so that a rotated key stops working at once, even if a command rotated it.
    const start = this.#clock.now();
    const row = await this.#sharedGet(accountKeys.apiKey(keyHash));
    if (!isRow(row)) {
      this.#keyRows.delete(apiKey);
      return null;
    }
    this.#keyRows.set(apiKey, { row, keyHash }, { start });
    const accountId = row.value;
    const cached = await this.#known(accountId);
    if (cached && sameHash(cached.keyHash, keyHash)) return cached.caller;
    // The key is newer than the cached account.
    this.#accounts.delete(accountId);
    const fresh = await this.#known(accountId);
    return fresh && sameHash(fresh.keyHash, keyHash) ? fresh.caller : null;
  }

  /** Returns the caller, with `keyRow`, of a key found valid within the last second; otherwise null. Reads nothing. */
  recall(apiKey: string): Caller | null {
    const kept = this.#keyRows.get(apiKey);
    const found = kept && this.#accounts.get(kept.row.value)?.found;
    if (!kept || !found) return null;
    const { caller, keyHash } = found;
    // No constant-time comparison: both hashes were computed in this process, so there is nothing to probe.
    return keyHash === kept.keyHash ? { ...caller, keyRow: kept.row } : null;
  }

  /** Resolves to the caller of an account, for work outside a request; null if there is no such account. */
  async of(accountId: string): Promise<Caller | null> {
    return (await this.#known(accountId))?.caller ?? null;
  }

  /** Whether any plan, or any account's plan, has changed since the last call; false at the first call. */
  async plansChanged(): Promise<boolean> {
    const { value } = await this.#kv.get(accountKeys.planChanges());
    const [before, now] = [this.#planChanges, value ?? 0n];
    this.#planChanges = now;
    if (before === null || before === now) return false;
    this.#accounts.clear();
    return true;
  }

  /** Evicts an account that this process has changed. */
  forget(accountId: string): void {
    this.#accounts.delete(accountId);
    for (const [apiKey, { row }] of this.#keyRows) if (row.value === accountId) this.#keyRows.delete(apiKey);
  }

  #known(accountId: string): Promise<Known | null> {
    const kept = this.#accounts.get(accountId);
    if (kept) return kept.known;
    const fresh: Cached = { known: this.#read(accountId), found: null };
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

  /** Evicts failed reads and absent accounts. */
  async #keep(accountId: string, fresh: Cached): Promise<void> {
    fresh.found = await fresh.known.catch(() => null);
    if (fresh.found === null && this.#accounts.get(accountId) === fresh) this.#accounts.delete(accountId);
  }
}

/** Returns the account without its key. */
export function publicPart(record: AccountRecord): Account {
  const { keyHash: _, sealedKey: __, ...account } = record;
  // Rows of older versions have no opt-out words and no country.
  return { ...account, optOutWords: account.optOutWords ?? [], country: account.country ?? null };
}

/** Compares two hexadecimal hashes in constant time. */
function sameHash(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

/** Whether the account has its contents sealed; a promise only if that must be read from the store. */
type IsSealedAccount = (accountId: string) => boolean | Promise<boolean>;

/** Makes what the store asks at every commit. */
export function makeIsSealedAccount(kv: Pick<Kv, "get">, clock: Clock): IsSealedAccount {
  const known = new LRUCache<string, boolean>(atMost(MOST_REMEMBERED, { forMs: CACHE_MS, clock }));

  async function read(accountId: string): Promise<boolean> {
    const start = clock.now();
    const { value } = await kv.get(accountKeys.account(accountId));
    const sealed = value?.sealed === true;
    known.set(accountId, sealed, { start });
    return sealed;
  }

  return (accountId) => known.get(accountId) ?? read(accountId);
}
