/** Accounts and their keys. */
import { Buffer } from "node:buffer";
import { invalid, notFound } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import { accountKeys, type AccountRecord } from "./rows.ts";
import { Change, isRow, type Kv, retryOnConflict, type Row } from "../store/kv.ts";
import type { Seal } from "../store/seal.ts";
import { type Account, type AccountChange, parseAllowedDomains, parseAllowedIps } from "./account.ts";
import { hashApiKey, keyUnknown, makeApiKey } from "./api_key.ts";
import { type Callers, publicPart } from "./callers.ts";

/** The latest time a JavaScript date can hold. */
const MAX_TIME_MS = 8.64e15;

interface AccountsDeps {
  kv: Kv;
  seal: Seal;
  callers: Pick<Callers, "forget">;
  runtime: Runtime;
}

export type Accounts = ReturnType<typeof makeAccounts>;

export function makeAccounts({ kv, seal, callers, runtime: { clock, ids, random } }: AccountsDeps) {
  /**
   * Creates an account. The key is returned here and by `apiKey` only. Throws Problem validation_failed for an unknown
   * plan.
   */
  async function create({ name, plan }: { name: string; plan: string }): Promise<{ account: Account; apiKey: string }> {
    const { apiKey, ...key } = newKey();
    const account: AccountRecord = {
      id: ids.next("acc"),
      name: checkName(name),
      plan,
      active: true,
      expiresAt: null,
      allowedIps: [],
      allowedDomains: [],
      optOutWords: [],
      country: null,
      createdAt: clock.now(),
      ...key,
    };
    await retryOnConflict(kv, async () => {
      const change = new Change().set(accountKeys.account(account.id), account);
      await assign(change, plan);
      return { change: change.set(accountKeys.apiKey(account.keyHash), account.id), result: undefined };
    });
    return { account: publicPart(account), apiKey };
  }

  async function list(): Promise<Account[]> {
    const accounts = await Array.fromAsync(
      kv.list({ prefix: accountKeys.accounts() }),
      ({ value }) => publicPart(value),
    );
    const going = await Array.fromAsync(kv.list({ prefix: accountKeys.removals() }), ({ key }) => String(key.at(-1)));
    return accounts.filter(({ id }) => !going.includes(id));
  }

  async function get(accountId: string): Promise<Account | null> {
    const row = await find(accountId);
    return row && publicPart(row.value);
  }

  /**
   * Changes an account. Throws Problem not_found, or validation_failed with every bad entry; then nothing is changed.
   */
  async function update(accountId: string, edit: AccountChange): Promise<Account> {
    const checked: AccountChange = {};
    if (edit.name !== undefined) checked.name = checkName(edit.name);
    if (edit.plan !== undefined) checked.plan = edit.plan;
    if (edit.active !== undefined) checked.active = edit.active;
    if (edit.expiresAt !== undefined) checked.expiresAt = checkTime(edit.expiresAt);
    if (edit.allowedIps !== undefined) checked.allowedIps = parseAllowedIps(edit.allowedIps);
    if (edit.allowedDomains !== undefined) checked.allowedDomains = parseAllowedDomains(edit.allowedDomains);
    if (edit.optOutWords !== undefined) checked.optOutWords = [...new Set(edit.optOutWords)];
    if (edit.country !== undefined) checked.country = edit.country;
    if (edit.sealed !== undefined) checked.sealed = edit.sealed;
    return publicPart(await rewrite(accountId, (record) => ({ ...record, ...checked })));
  }

  /**
   * Marks the account for removal: its keys stop working, and the gateway removes it with everything it owns, lines
   * first, now or when it runs next. Throws Problem not_found.
   */
  async function remove(accountId: string): Promise<void> {
    await retryOnConflict(kv, async () => {
      const row = await record(accountId);
      const change = new Change().check(row).set(row.key, { ...row.value, active: false });
      change.delete(accountKeys.apiKey(row.value.keyHash)).set(accountKeys.removal(accountId), true);
      return { change, result: undefined };
    });
    callers.forget(accountId);
  }

  /** Resolves to a new key; the previous one stops working at once. */
  async function rotateKey(accountId: string): Promise<string> {
    const { apiKey, ...key } = newKey();
    await rewrite(accountId, (record) => ({ ...record, ...key }));
    return apiKey;
  }

  /**
   * As `rotateKey`, authorised by the current key. Throws Problem api_key_invalid if that is no longer the account's.
   */
  async function replaceKey(old: string): Promise<string> {
    const { apiKey, ...key } = newKey();
    const keyHash = hashApiKey(old);
    const { value: accountId } = await kv.get(accountKeys.apiKey(keyHash));
    if (accountId === null) throw keyUnknown();
    await rewrite(accountId, (record) => {
      // Of several concurrent calls only one succeeds, and its key is the valid one.
      if (record.keyHash !== keyHash) throw keyUnknown();
      return { ...record, ...key };
    });
    return apiKey;
  }

  /** Resolves to the current key, decrypted, for the operator. */
  async function apiKey(accountId: string): Promise<string> {
    return Buffer.from(seal.open((await record(accountId)).value.sealedKey)).toString();
  }

  function newKey(): { apiKey: string; keyHash: string; sealedKey: Uint8Array<ArrayBuffer> } {
    const apiKey = makeApiKey(random);
    return { apiKey, keyHash: hashApiKey(apiKey), sealedKey: seal.seal(Buffer.from(apiKey)) };
  }

  async function record(accountId: string): Promise<Row<AccountRecord>> {
    const row = await find(accountId);
    if (row === null) throw notFound("account");
    return row;
  }

  /** Null also for an account that is being removed. */
  async function find(accountId: string): Promise<Row<AccountRecord> | null> {
    const [slot, going] = await Promise.all([
      kv.get(accountKeys.account(accountId)),
      kv.get(accountKeys.removal(accountId)),
    ]);
    return isRow(slot) && going.value === null ? slot : null;
  }

  /** Adds the assignment of the plan. The commit fails if the plan is removed meanwhile, and a removal after it. */
  async function assign(change: Change, plan: string): Promise<void> {
    const slot = await kv.get(accountKeys.plan(plan));
    if (slot.value === null) throw invalid("plan", `there is no plan "${plan}"`);
    change.check(slot).add(accountKeys.planChanges(), 1);
  }

  async function rewrite(accountId: string, edit: (record: AccountRecord) => AccountRecord): Promise<AccountRecord> {
    const changed = await retryOnConflict(kv, async () => {
      const row = await record(accountId);
      const next = edit(row.value);
      const change = new Change().check(row).set(accountKeys.account(accountId), next);
      if (next.plan !== row.value.plan) await assign(change, next.plan);
      if (next.keyHash !== row.value.keyHash) {
        change.delete(accountKeys.apiKey(row.value.keyHash)).set(accountKeys.apiKey(next.keyHash), accountId);
      }
      return { change, result: next };
    });
    callers.forget(accountId);
    return changed;
  }

  return { create, list, get, update, remove, rotateKey, replaceKey, apiKey };
}

function checkName(name: string): string {
  const trimmed = name.trim();
  if (trimmed === "" || trimmed.length > 100) throw invalid("name", "must have 1 to 100 characters");
  // Names are shown in tables and on terminals.
  if (/[\p{Cc}\p{Cs}]/u.test(trimmed)) throw invalid("name", "must be one line, without control characters");
  return trimmed;
}

function checkTime(time: number | null): number | null {
  if (time !== null && !(Math.abs(time) <= MAX_TIME_MS)) throw invalid("expiresAt", "is not a time");
  return time;
}
