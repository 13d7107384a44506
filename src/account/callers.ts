/** Who a key belongs to: an account, believed for a moment, with its plan. */
import type { Clock } from "../runtime.ts";
import { isRow, type Kv, type Row } from "../store/kv.ts";
import { shareReads } from "../store/layers/shared_reads.ts";
import type { Account, Accounts, Caller } from "./account.ts";
import { hashApiKey, isApiKeyShaped, sameHash } from "./api_key.ts";
import type { Plans } from "./plan.ts";
import { accountKeys, type AccountRecord } from "./rows.ts";

/** How long an account and its plan are believed: within it changes by another process reach this one. */
const CACHE_MS = 1_000;

interface Callers extends Pick<Accounts, "authenticate" | "recall" | "caller" | "plansChanged"> {
  /** The account was changed here. */
  forget(accountId: string): void;
}

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

export function makeCallers({ kv, plans, clock }: { kv: Kv; plans: Pick<Plans, "get">; clock: Clock }): Callers {
  const sharedGet = shareReads(kv);
  const cache = new Map<string, Cached>();
  /** Rows of keys that were valid lately, by the key: whoever calls again is recognised without hashing it. */
  const keyRows = new Map<string, { readAt: number; row: Row<string>; keyHash: string }>();
  /** As many as the last look found; null before it. */
  let planChanges: bigint | null = null;
  const isFresh = (kept: { readAt: number }) => Math.abs(clock.now() - kept.readAt) < CACHE_MS;

  async function read(accountId: string): Promise<Known | null> {
    const { value } = await kv.get(accountKeys.account(accountId));
    if (value === null) return null;
    const plan = await plans.get(value.plan);
    if (plan === null) throw new Error(`account ${accountId} is on plan "${value.plan}", which does not exist`);
    return { caller: { account: publicPart(value), plan }, keyHash: value.keyHash };
  }

  function known(accountId: string): Promise<Known | null> {
    const kept = cache.get(accountId);
    if (kept && isFresh(kept)) return kept.known;
    const fresh: Cached = { readAt: clock.now(), known: read(accountId), found: null };
    cache.set(accountId, fresh);
    void keep(accountId, fresh);
    return fresh.known;
  }

  /** A failed read must not be remembered, nor an account that is not there. */
  async function keep(accountId: string, fresh: Cached): Promise<void> {
    fresh.found = await fresh.known.catch(() => null);
    if (fresh.found === null && cache.get(accountId) === fresh) cache.delete(accountId);
  }

  return {
    async authenticate(apiKey) {
      if (!isApiKeyShaped(apiKey)) return null;
      const keyHash = hashApiKey(apiKey).toString("hex");
      // Read every time: a key that was rotated, here or by a command, stops working at once.
      const readAt = clock.now();
      const row = await sharedGet(accountKeys.apiKey(keyHash));
      if (!isRow(row)) {
        keyRows.delete(apiKey);
        return null;
      }
      keyRows.set(apiKey, { readAt, row, keyHash });
      const accountId = row.value;
      const cached = await known(accountId);
      if (cached && sameHash(cached.keyHash, keyHash)) return cached.caller;
      // The key is newer than what is remembered of its account.
      cache.delete(accountId);
      const fresh = await known(accountId);
      return fresh && sameHash(fresh.keyHash, keyHash) ? fresh.caller : null;
    },

    recall(apiKey) {
      const kept = keyRows.get(apiKey);
      if (!kept) return null;
      if (!isFresh(kept)) {
        keyRows.delete(apiKey);
        return null;
      }
      const of = cache.get(kept.row.value);
      if (!of?.found || !isFresh(of)) return null;
      const { caller, keyHash } = of.found;
      // Both are of this process: nobody outside can try what is compared here.
      return keyHash === kept.keyHash ? { ...caller, keyRow: kept.row } : null;
    },

    async caller(accountId) {
      return (await known(accountId))?.caller ?? null;
    },

    async plansChanged() {
      const { value } = await kv.get(accountKeys.planChanges());
      const [before, now] = [planChanges, value ?? 0n];
      planChanges = now;
      if (before === null || before === now) return false;
      cache.clear();
      return true;
    },

    forget(accountId) {
      cache.delete(accountId);
      for (const [apiKey, { row }] of keyRows) if (row.value === accountId) keyRows.delete(apiKey);
    },
  };
}

/** The account without its key. */
export function publicPart(record: AccountRecord): Account {
  const { keyHash: _, sealedKey: __, ...account } = record;
  // An older gateway knew no words.
  return { ...account, optOutWords: account.optOutWords ?? [] };
}
