import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Plans } from "../../../src/account/plans.ts";
import { accountKeys } from "../../../src/account/rows.ts";
import { type SendWorld, sendWorld, withSendWorld } from "../../support/send_world.ts";

/** Another process on the same store. */
function another({ kv, runtime }: SendWorld): SendWorld {
  return sendWorld(kv, runtime);
}

Deno.test("a new account is known by its key, with its plan", () =>
  withSendWorld(async ({ accounts, callers }) => {
    const { account, apiKey } = await accounts.create({ name: " acme ", plan: "free" });
    assert.equal(account.name, "acme");
    const caller = await callers.authenticate(apiKey);
    assert.deepEqual(caller?.account, account);
    assert.equal(caller?.plan.daily, 100);
    assert.deepEqual(await callers.of(account.id), caller);
    assert.deepEqual(await accounts.list(), [account]);
  }));

Deno.test("what is not a key of anybody is nobody's", () =>
  withSendWorld(async ({ accounts, callers }) => {
    const { apiKey } = await accounts.create({ name: "acme", plan: "free" });
    const altered = apiKey.slice(0, -2) + (apiKey.endsWith("AA") ? "BB" : "AA");
    for (const text of ["", "pk_", altered, `${apiKey} `, apiKey.toUpperCase()]) {
      assert.equal(await callers.authenticate(text), null, text);
    }
  }));

Deno.test("an account needs a name and a plan that exists, else nothing is written", () =>
  withSendWorld(async ({ accounts }) => {
    const isInvalid = { code: "validation_failed" };
    await assert.rejects(accounts.create({ name: " ", plan: "free" }), isInvalid);
    await assert.rejects(accounts.create({ name: "x".repeat(101), plan: "free" }), isInvalid);
    await assert.rejects(accounts.create({ name: "acme", plan: "platinum" }), isInvalid);
    assert.deepEqual(await accounts.list(), []);
  }));

Deno.test("the store holds neither the key nor anything that reads like it", () =>
  withSendWorld(async ({ accounts, kv }) => {
    const { account, apiKey } = await accounts.create({ name: "acme", plan: "free" });
    const row = await kv.get(accountKeys.account(account.id));
    assert(!Buffer.from(row.value!.sealedKey).includes(apiKey.slice(3, 20)));
    assert(!JSON.stringify(row.value).includes(apiKey.slice(3, 20)));
    assert.equal(await accounts.apiKey(account.id), apiKey);
  }));

Deno.test("no account handed out carries the hash or the sealed key", () =>
  withSendWorld(async ({ accounts, callers }) => {
    const { account, apiKey } = await accounts.create({ name: "acme", plan: "free" });
    const seen = [
      account,
      await accounts.get(account.id),
      (await callers.authenticate(apiKey))?.account,
      await accounts.update(account.id, { name: "new" }),
      ...await accounts.list(),
    ];
    for (const one of seen) assert(!/keyHash|sealedKey/.test(JSON.stringify(one)));
  }));

Deno.test("a key is recalled for a second after it was found valid, with the row that shows whether it still is", () =>
  withSendWorld(async (world) => {
    const { accounts, callers, runtime, kv } = world;
    const { account, apiKey } = await accounts.create({ name: "acme", plan: "free" });
    assert.equal(await callers.recall(apiKey), null);
    await callers.authenticate(apiKey);
    const recalled = await callers.recall(apiKey);
    assert.equal(recalled?.account.id, account.id);
    assert.equal((await kv.get(recalled!.keyRow!.key)).version, recalled!.keyRow!.version);
    await another(world).accounts.rotateKey(account.id);
    assert.notEqual((await kv.get(recalled!.keyRow!.key)).version, recalled!.keyRow!.version);

    const key = await accounts.rotateKey(account.id);
    assert.equal(await callers.recall(apiKey), null);
    await callers.authenticate(key);
    await runtime.clock.advance(999);
    assert(await callers.recall(key));
    await runtime.clock.advance(1);
    assert.equal(await callers.recall(key), null);
    assert.equal(await callers.recall("pk_nonsense"), null);
  }));

Deno.test("a rotated key stops at once and the new one works at once, also for another process", () =>
  withSendWorld(async (world) => {
    const other = another(world);
    const { account, apiKey: first } = await world.accounts.create({ name: "acme", plan: "free" });
    assert(await other.callers.authenticate(first));
    const second = await world.accounts.rotateKey(account.id);
    for (const { callers } of [world, other]) {
      assert.equal(await callers.authenticate(first), null);
      assert.equal((await callers.authenticate(second))?.account.id, account.id);
    }
    assert.equal(await other.accounts.apiKey(account.id), second);
  }));

Deno.test("a change counts at once in its own process and within 2 s in another", () =>
  withSendWorld(async (world) => {
    const other = another(world);
    const { account, apiKey } = await world.accounts.create({ name: "acme", plan: "free" });
    const isActive = async ({ callers }: SendWorld) => (await callers.authenticate(apiKey))?.account.active;
    assert.equal(await isActive(other), true);
    await world.accounts.update(account.id, { active: false });
    assert.equal(await isActive(world), false);
    await world.runtime.clock.advance(2_000);
    assert.equal(await isActive(other), false);
  }));

Deno.test("an edited plan reaches the callers that are on it within 2 s", () =>
  withSendWorld(async ({ accounts, callers, kv, runtime }) => {
    const { apiKey } = await accounts.create({ name: "acme", plan: "free" });
    assert.equal((await callers.authenticate(apiKey))?.plan.sessions, 1);
    await new Plans(kv).set({ name: "free", sessions: 4, delayMinMs: 0, delayMaxMs: 0 });
    await runtime.clock.advance(2_000);
    assert.equal((await callers.authenticate(apiKey))?.plan.sessions, 4);
  }));

Deno.test("restrictions, plan and expiry are kept as given, canonical and checked", () =>
  withSendWorld(async ({ accounts }) => {
    const { account } = await accounts.create({ name: "acme", plan: "free" });
    const changed = await accounts.update(account.id, {
      plan: "business",
      expiresAt: 1_800_000_000_000,
      allowedIps: ["10.0.0.0/8", "2001:DB8::1"],
      allowedDomains: ["Example.com"],
    });
    assert.deepEqual(changed, {
      ...account,
      plan: "business",
      expiresAt: 1_800_000_000_000,
      allowedIps: ["10.0.0.0/8", "2001:db8::1"],
      allowedDomains: ["example.com"],
    });
    assert.deepEqual(await accounts.get(account.id), changed);
    assert.deepEqual((await accounts.update(account.id, { allowedIps: [] })).allowedIps, []);
  }));

Deno.test("an update with anything bad in it changes nothing", () =>
  withSendWorld(async ({ accounts }) => {
    const { account } = await accounts.create({ name: "acme", plan: "free" });
    for (
      const bad of [
        { allowedIps: ["300.0.0.1"] },
        { allowedDomains: ["http://x"] },
        { plan: "platinum" },
        { name: "" },
        { expiresAt: NaN },
      ]
    ) {
      await assert.rejects(accounts.update(account.id, { active: false, ...bad }), { code: "validation_failed" });
    }
    assert.deepEqual(await accounts.get(account.id), account);
  }));

Deno.test("an account that does not exist is not found", () =>
  withSendWorld(async ({ accounts, callers }) => {
    assert.equal(await accounts.get("acc_none"), null);
    assert.equal(await callers.of("acc_none"), null);
    const missing = { code: "not_found" };
    await assert.rejects(accounts.update("acc_none", { active: true }), missing);
    await assert.rejects(accounts.rotateKey("acc_none"), missing);
    await assert.rejects(accounts.apiKey("acc_none"), missing);
  }));

Deno.test("changes made at the same time by two processes all count", () =>
  withSendWorld(async (world) => {
    const { accounts: other } = another(world);
    const { account } = await world.accounts.create({ name: "acme", plan: "free" });
    await Promise.all([
      world.accounts.update(account.id, { name: "new" }),
      other.update(account.id, { plan: "business" }),
      other.rotateKey(account.id),
      world.accounts.update(account.id, { active: false }),
    ]);
    const { name, plan, active } = (await other.get(account.id))!;
    assert.deepEqual({ name, plan, active }, { name: "new", plan: "business", active: false });
  }));

Deno.test("a plan that another process edits, or puts an account on, is noticed once and in force at once", () =>
  withSendWorld(async (world) => {
    const { accounts, callers, kv } = world;
    const { account } = await accounts.create({ name: "acme", plan: "free" });
    const daily = async () => (await callers.of(account.id))!.plan.daily;
    assert.deepEqual([await callers.plansChanged(), await daily()], [false, 100]);
    await new Plans(kv).set({ name: "free", daily: 7 });
    assert.deepEqual([await daily(), await callers.plansChanged(), await daily()], [100, true, 7]);
    assert.equal(await callers.plansChanged(), false);
    await another(world).accounts.update(account.id, { name: "new" });
    assert.equal(await callers.plansChanged(), false, "the plan is the same");
    await another(world).accounts.update(account.id, { plan: "own" });
    assert.deepEqual([await callers.plansChanged(), await daily()], [true, null]);
  }));
