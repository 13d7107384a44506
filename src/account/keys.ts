/**
 * Additional API keys of an account, each with its own name, scopes and limits: for a web page, one component of the
 * client's system, or an integration. The account's own key (`accounts.ts`), which has every scope, is not among them.
 * Only hashes are stored, so a key is shown once.
 */
import { LRUCache } from "lru-cache";
import { atMost } from "../base/at_most.ts";
import { invalid, notFound, Problem } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import { Change, isRow, type Kv, retryOnConflict, type Row } from "../store/kv.ts";
import { type Account, type Caller, parseAllowedDomains, parseAllowedIps, type Scope, SCOPES } from "./account.ts";
import type { Callers } from "./callers.ts";
import { hashApiKey, isApiKeyShaped, makeApiKey } from "./api_key.ts";
import { accountKeys, type KeyRecord } from "./rows.ts";

/** All are read for a list; a client that needs more should use several accounts. */
const KEYS_PER_ACCOUNT = 100;
/** The last use is recorded to the minute, so that not every request writes. */
const USE_EVERY_MS = 60_000;
/** Most keys whose last use is held in memory. */
const MOST_USED = 10_000;

export type AccountKey = Omit<KeyRecord, "accountId" | "keyHash"> & { lastUsedAt: number | null };

export interface MadeKey {
  key: AccountKey;
  apiKey: string;
}

interface NewKey extends Pick<KeyRecord, "name" | "scopes" | "allowedIps" | "allowedDomains"> {
  /** Adds mutations to the commit that creates the key. */
  commitWith?: (change: Change, made: MadeKey) => void;
}

export type AccountKeys = ReturnType<typeof makeAccountKeys>;

export function makeAccountKeys(
  { kv, callers, runtime: { clock, ids, random } }: { kv: Kv; callers: Pick<Callers, "of">; runtime: Runtime },
) {
  /** The keys whose use was recorded within the last minute. */
  const used = new LRUCache<string, true>(atMost(MOST_USED, { forMs: USE_EVERY_MS, clock }));

  /** Lists the account's keys, oldest first. */
  async function list(accountId: string): Promise<AccountKey[]> {
    return await Promise.all((await rows(accountId)).map((row) => shown(row)));
  }

  /**
   * Creates a key; `apiKey` is never shown again. Throws Problem validation_failed for a bad entry or too many keys.
   */
  async function create(
    accountId: string,
    { name, scopes, allowedIps, allowedDomains, commitWith }: NewKey,
  ): Promise<MadeKey> {
    const apiKey = makeApiKey(random);
    const record: KeyRecord = {
      id: ids.next("key"),
      accountId,
      name,
      scopes: SCOPES.filter((scope) => scopes.includes(scope)),
      allowedIps: parseAllowedIps(allowedIps),
      allowedDomains: parseAllowedDomains(allowedDomains),
      createdAt: clock.now(),
      keyHash: hashApiKey(apiKey),
    };
    const result = { key: publicKey(record, null), apiKey };
    return await retryOnConflict(kv, async () => {
      const made = await kv.get(accountKeys.keysMade(accountId));
      if ((await rows(accountId)).length >= KEYS_PER_ACCOUNT) {
        throw invalid("name", `an account has at most ${KEYS_PER_ACCOUNT} keys`);
      }
      const change = new Change().check(made).set(accountKeys.keysMade(accountId), (made.value ?? 0) + 1)
        .set(accountKeys.accountKey(accountId, record.id), record)
        .set(accountKeys.keyByHash(record.keyHash), { accountId, keyId: record.id });
      commitWith?.(change, result);
      return { change, result };
    });
  }

  /** Removes a key, which stops working at once. Throws Problem not_found. */
  async function remove(accountId: string, keyId: string): Promise<AccountKey> {
    const slot = await kv.get(accountKeys.accountKey(accountId, keyId));
    if (slot.value === null) throw notFound("key");
    const removed = await shown(slot.value);
    const change = new Change().delete(slot.key).delete(accountKeys.keyByHash(slot.value.keyHash))
      .delete(accountKeys.keyUsed(keyId));
    await kv.commit(change);
    used.delete(keyId);
    return removed;
  }

  /** Resolves to the caller using the key; null if it is not one of these keys. */
  async function authenticate(apiKey: string): Promise<Caller | null> {
    if (!isApiKeyShaped(apiKey)) return null;
    const { value: place } = await kv.get(accountKeys.keyByHash(hashApiKey(apiKey)));
    if (place === null) return null;
    const slot = await kv.get(accountKeys.accountKey(place.accountId, place.keyId));
    const caller = isRow(slot) && await callers.of(place.accountId);
    if (!isRow(slot) || !caller) return null;
    noteUse(slot);
    const { id, name, scopes, allowedIps, allowedDomains } = slot.value;
    return { ...caller, key: { id, name, scopes, allowedIps, allowedDomains } };
  }

  async function rows(accountId: string): Promise<KeyRecord[]> {
    return await Array.fromAsync(
      kv.list({ prefix: accountKeys.keysOfAccount(accountId) }),
      ({ value }) => value,
    );
  }

  async function shown(record: KeyRecord): Promise<AccountKey> {
    return publicKey(record, (await kv.get(accountKeys.keyUsed(record.id))).value);
  }

  /** Records the time of use, at most once a minute and without delaying the request; not if the key is removed. */
  function noteUse(row: Row<KeyRecord>): void {
    const keyId = row.value.id;
    if (used.has(keyId)) return;
    used.set(keyId, true);
    kv.commit(new Change().check(row).set(accountKeys.keyUsed(keyId), clock.now())).catch(() => used.delete(keyId));
  }

  return { list, create, remove, authenticate };
}

function publicKey({ accountId: _, keyHash: __, ...key }: KeyRecord, lastUsedAt: number | null): AccountKey {
  return { ...key, lastUsedAt };
}

/** Throws Problem scope_missing if the caller's key lacks the scope, and any that may stand in for it. */
export function requireScope({ key }: Pick<Caller, "key">, scope: Scope, ...others: Scope[]): void {
  if (key && ![scope, ...others].some((each) => key.scopes.includes(each))) throw scopeMissing(scope);
}

export function scopeMissing(scope: Scope): Problem {
  return new Problem("scope_missing", `This needs a key with the scope "${scope}".`);
}

/** Returns whether what the caller sends waits for approval: the key may propose, and not send. */
export function proposes({ key }: Pick<Caller, "key">): boolean {
  return key !== undefined && key.scopes.includes("propose") && !key.scopes.includes("send");
}

/** Whether web pages may use the key, which makes it known to everyone who opens the page. */
export function isForPages({ key, account }: { key?: Caller["key"]; account: Account }): boolean {
  return (key ?? account).allowedDomains.length > 0;
}
