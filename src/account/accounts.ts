/** The accounts in the store. */
import { Buffer } from "node:buffer";
import { invalid, notFound } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import { accountKeys, type AccountRecord, type PlanRecord } from "./rows.ts";
import { Change, isRow, type Kv, retryOnConflict, type Row, type Slot } from "../store/kv.ts";
import type { Seal } from "../store/seal.ts";
import type { Account, AccountChange, Accounts } from "./account.ts";
import { hashApiKey, keyUnknown, makeApiKey } from "./api_key.ts";
import { makeCallers, publicPart } from "./callers.ts";
import type { Plans } from "./plan.ts";
import { parseAllowedDomains, parseAllowedIps } from "./restrictions.ts";

/** The latest time a JavaScript date can hold. */
const MAX_TIME_MS = 8.64e15;

export function makeAccounts(options: { kv: Kv; seal: Seal; plans: Plans; runtime: Runtime }): Accounts {
  const { kv, seal, plans, runtime } = options;
  const callers = makeCallers({ kv, plans, clock: runtime.clock });

  async function record(accountId: string): Promise<Row<AccountRecord>> {
    const slot = await kv.get(accountKeys.account(accountId));
    if (!isRow(slot)) throw notFound("account");
    return slot;
  }

  async function change(accountId: string, edit: (record: AccountRecord) => AccountRecord): Promise<AccountRecord> {
    const changed = await retryOnConflict(kv, async () => {
      const row = await record(accountId);
      const next = edit(row.value);
      const change = new Change().check(row).set(accountKeys.account(accountId), next);
      if (next.plan !== row.value.plan) change.check(await planRow(next.plan)).add(accountKeys.planChanges(), 1);
      if (next.keyHash !== row.value.keyHash) {
        change.delete(accountKeys.apiKey(row.value.keyHash)).set(accountKeys.apiKey(next.keyHash), accountId);
      }
      return { change, result: next };
    });
    callers.forget(accountId);
    return changed;
  }

  function newKey(): { apiKey: string; keyHash: string; sealedKey: Uint8Array<ArrayBuffer> } {
    const apiKey = makeApiKey(runtime.random);
    return { apiKey, keyHash: hashApiKey(apiKey).toString("hex"), sealedKey: seal.seal(Buffer.from(apiKey)) };
  }

  /** Checked by whoever puts an account on the plan: it may be removed at that moment. */
  async function planRow(name: string): Promise<Slot<PlanRecord>> {
    const slot = await kv.get(accountKeys.plan(name));
    if (slot.value === null) throw invalid("plan", `there is no plan "${name}"`);
    return slot;
  }

  return {
    authenticate: callers.authenticate,
    recall: callers.recall,
    caller: callers.caller,
    plansChanged: callers.plansChanged,

    async create({ name, plan }) {
      const { apiKey, ...key } = newKey();
      const account: AccountRecord = {
        id: runtime.ids.next("acc"),
        name: checkName(name),
        plan,
        active: true,
        expiresAt: null,
        allowedIps: [],
        allowedDomains: [],
        optOutWords: [],
        createdAt: runtime.clock.now(),
        ...key,
      };
      await retryOnConflict(kv, async () => {
        const change = new Change().check(await planRow(plan)).set(accountKeys.account(account.id), account);
        return { change: change.set(accountKeys.apiKey(account.keyHash), account.id), result: null };
      });
      return { account: publicPart(account), apiKey };
    },

    async list() {
      const accounts: Account[] = [];
      for await (const row of kv.list({ prefix: accountKeys.accounts() })) accounts.push(publicPart(row.value));
      const going = await Array.fromAsync(kv.list({ prefix: accountKeys.removals() }), ({ key }) => String(key.at(-1)));
      return accounts.filter(({ id }) => !going.includes(id));
    },

    async get(accountId) {
      const [{ value }, going] = await Promise.all([
        kv.get(accountKeys.account(accountId)),
        kv.get(accountKeys.removal(accountId)),
      ]);
      return value && going.value === null ? publicPart(value) : null;
    },

    async remove(accountId) {
      await retryOnConflict(kv, async () => {
        const row = await record(accountId);
        const change = new Change().check(row).set(row.key, { ...row.value, active: false });
        change.delete(accountKeys.apiKey(row.value.keyHash)).set(accountKeys.removal(accountId), true);
        return { change, result: undefined };
      });
      callers.forget(accountId);
    },

    async update(accountId, edit) {
      const checked: AccountChange = {};
      if (edit.name !== undefined) checked.name = checkName(edit.name);
      if (edit.plan !== undefined) checked.plan = edit.plan;
      if (edit.active !== undefined) checked.active = edit.active;
      if (edit.expiresAt !== undefined) checked.expiresAt = checkTime(edit.expiresAt);
      if (edit.allowedIps !== undefined) checked.allowedIps = parseAllowedIps(edit.allowedIps);
      if (edit.allowedDomains !== undefined) checked.allowedDomains = parseAllowedDomains(edit.allowedDomains);
      if (edit.optOutWords !== undefined) checked.optOutWords = [...new Set(edit.optOutWords)];
      if (edit.sealed !== undefined) checked.sealed = edit.sealed;
      return publicPart(await change(accountId, (record) => ({ ...record, ...checked })));
    },

    async rotateKey(accountId) {
      const { apiKey, ...key } = newKey();
      await change(accountId, (record) => ({ ...record, ...key }));
      return apiKey;
    },

    async replaceKey(old) {
      const { apiKey, ...key } = newKey();
      const keyHash = hashApiKey(old).toString("hex");
      const { value: accountId } = await kv.get(accountKeys.apiKey(keyHash));
      if (accountId === null) throw keyUnknown();
      await change(accountId, (record) => {
        // Of several at once one is answered a key, and it is the one that counts.
        if (record.keyHash !== keyHash) throw keyUnknown();
        return { ...record, ...key };
      });
      return apiKey;
    },

    async apiKey(accountId) {
      return Buffer.from(seal.open((await record(accountId)).value.sealedKey)).toString();
    },
  };
}

function checkName(name: string): string {
  const trimmed = name.trim();
  if (trimmed === "" || trimmed.length > 100) throw invalid("name", "must have 1 to 100 characters");
  // It stands in tables and on terminals.
  if (/\p{Cc}/u.test(trimmed)) throw invalid("name", "must be one line, without control characters");
  return trimmed;
}

function checkTime(time: number | null): number | null {
  if (time !== null && !(Math.abs(time) <= MAX_TIME_MS)) throw invalid("expiresAt", "is not a time");
  return time;
}
