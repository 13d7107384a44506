import assert from "node:assert/strict";
import { DEFAULT_PLANS, UNLIMITED } from "../../../src/account/plan.ts";
import { Plans } from "../../../src/account/plans.ts";
import { accountKeys, type PlanRecord } from "../../../src/account/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import { failingKv } from "../../support/failing_kv.ts";
import { withSendWorld } from "../../support/send_world.ts";

Deno.test("a new data folder has the default plans, free with 1 session and 100 messages a day", () =>
  withSendWorld(async ({ kv }) => {
    const plans = new Plans(kv);
    assert.deepEqual((await plans.list()).map((plan) => plan.name), ["business", "free", "own", "sandbox", "starter"]);
    const free = await plans.get("free");
    assert.equal(free?.sessions, 1);
    assert.equal(free?.daily, 100);
    assert.equal((await plans.list()).length, DEFAULT_PLANS.length);
  }));

Deno.test("a plan that the operator edited stays as it is when the defaults are added again", () =>
  withSendWorld(async ({ kv }) => {
    const counted = failingKv(kv);
    const plans = new Plans(counted);
    await plans.set({ name: "free", sessions: 2, daily: 50, delayMinMs: 1_000, delayMaxMs: 2_000 });
    await plans.addDefaults();
    assert.equal(counted.commits.length, 1, "a start with all plans there writes");
    assert.deepEqual(await plans.get("free"), {
      ...UNLIMITED,
      name: "free",
      sessions: 2,
      daily: 50,
      delayMinMs: 1_000,
      delayMaxMs: 2_000,
    });
  }));

Deno.test("limits that an edit leaves out stay, and null lifts them", () =>
  withSendWorld(async ({ kv }) => {
    const plans = new Plans(kv);
    const edit = { name: "starter", sessions: 3, delayMinMs: 0, delayMaxMs: 0 };
    assert.equal((await plans.set(edit)).monthly, 20_000);
    assert.equal((await plans.set({ ...edit, monthly: null })).monthly, null);
    const fresh = await plans.set({ ...edit, name: "fresh" });
    assert.deepEqual([fresh.daily, fresh.monthly, fresh.requestsPerMinute], [null, null, 600]);
  }));

Deno.test("a plan that makes no sense is refused with every reason, and nothing is written", () =>
  withSendWorld(async ({ kv }) => {
    const plans = new Plans(kv);
    await assert.rejects(
      plans.set({ name: "Bad Name", sessions: 1.5, daily: -1, delayMinMs: 10, delayMaxMs: 5 }),
      (error: { code: string; extras: { errors: { path: string }[] } }) => {
        assert.equal(error.code, "validation_failed");
        assert.deepEqual(error.extras.errors.map((field) => field.path), ["name", "sessions", "daily", "delayMinMs"]);
        return true;
      },
    );
    assert.equal(await plans.get("Bad Name"), null);
  }));

Deno.test("an edit of one field changes that alone; a new plan needs sessions and pauses", () =>
  withSendWorld(async ({ kv }) => {
    const plans = new Plans(kv);
    const before = await plans.get("starter");
    const hours = { days: ["mon" as const], from: "09:00", to: "18:00", timeZone: "Europe/Madrid" };
    assert.deepEqual(await plans.set({ name: "starter", hours, daily: undefined }), { ...before, hours });
    assert.deepEqual(await plans.set({ name: "starter", hours: null }), before);
    await assert.rejects(plans.set({ name: "strater", daily: 5 }), /sessions is needed for a new plan/);
    await assert.rejects(plans.set({ name: "starter", hours: { ...hours, timeZone: "Nowhere" } }), /time zone/);
    await assert.rejects(plans.set({ name: "starter", typingMs: 20_001 }), /typingMs/);
  }));

Deno.test("a plan that an older gateway wrote has no limits that it did not know", () =>
  withSendWorld(async ({ kv }) => {
    const old: PlanRecord = { name: "old", sessions: 2, daily: 7, monthly: null, delayMinMs: 1, delayMaxMs: 2 };
    await kv.commit(new Change().set(accountKeys.plan("old"), old));
    assert.deepEqual(await new Plans(kv).get("old"), { ...UNLIMITED, ...old });
  }));

Deno.test("a plan is removed unless an account is on it, and a default one does not come back", () =>
  withSendWorld(async ({ kv, accounts }) => {
    const plans = new Plans(kv);
    const { account } = await accounts.create({ name: "acme", plan: "starter" });
    await assert.rejects(plans.remove("starter"), { code: "plan_in_use" });
    await accounts.update(account.id, { plan: "free" });
    await plans.remove("starter");
    await assert.rejects(plans.remove("starter"), { code: "not_found" });
    await plans.addDefaults();
    assert.equal(await plans.get("starter"), null);
    await assert.rejects(accounts.update(account.id, { plan: "starter" }), { code: "validation_failed" });
    await plans.set({ name: "starter", sessions: 1, delayMinMs: 0, delayMaxMs: 0 });
    assert.equal((await plans.get("starter"))?.sessions, 1);
  }));

Deno.test("an account and the removal of its plan at once: whoever is first wins, and no account is on a plan that is not there", () =>
  withSendWorld(async ({ kv, accounts }) => {
    const plans = new Plans(kv);
    const { account } = await accounts.create({ name: "acme", plan: "free" });
    for (let i = 0; i < 20; i++) {
      const name = `plan-${i}`;
      await plans.set({ name, sessions: 1, delayMinMs: 0, delayMaxMs: 0 });
      await Promise.allSettled([plans.remove(name), accounts.update(account.id, { plan: name })]);
      assert.notEqual(await plans.get((await accounts.get(account.id))!.plan), null);
    }
  }));

Deno.test("an account made while its plan is being removed keeps it, also if the process ends just then", () =>
  withSendWorld(async ({ kv, accounts }) => {
    await new Plans(kv).set({ name: "gone", sessions: 1, delayMinMs: 0, delayMaxMs: 0 });
    let isMade = false;
    const late = failingKv({
      ...kv,
      async commit(change: Change) {
        if (!isMade) await accounts.create({ name: "late", plan: "gone" });
        isMade = true;
        return await kv.commit(change);
      },
    });
    late.fails = () => isMade;
    await assert.rejects(new Plans(late).remove("gone"));
    assert.notEqual(await new Plans(kv).get("gone"), null);
  }));
