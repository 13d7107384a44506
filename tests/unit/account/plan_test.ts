import assert from "node:assert/strict";
import { DEFAULT_PLANS } from "../../../src/account/plan.ts";
import { makePlans } from "../../../src/account/plans.ts";
import { withSendWorld } from "../../support/send_world.ts";

Deno.test("a new data folder has the default plans, free with 1 session and 100 messages a day", () =>
  withSendWorld(async ({ kv }) => {
    const plans = makePlans(kv);
    assert.deepEqual((await plans.list()).map((plan) => plan.name), ["business", "free", "sandbox", "starter"]);
    const free = await plans.get("free");
    assert.equal(free?.sessions, 1);
    assert.equal(free?.daily, 100);
    assert.equal((await plans.list()).length, DEFAULT_PLANS.length);
  }));

Deno.test("a plan that the operator edited stays as it is when the defaults are added again", () =>
  withSendWorld(async ({ kv }) => {
    const plans = makePlans(kv);
    await plans.set({ name: "free", sessions: 2, daily: 50, delayMinMs: 1_000, delayMaxMs: 2_000 });
    await plans.addDefaults();
    assert.deepEqual(await plans.get("free"), {
      name: "free",
      sessions: 2,
      daily: 50,
      monthly: null,
      delayMinMs: 1_000,
      delayMaxMs: 2_000,
      requestsPerMinute: 600,
    });
  }));

Deno.test("limits that an edit leaves out stay, and null lifts them", () =>
  withSendWorld(async ({ kv }) => {
    const plans = makePlans(kv);
    const edit = { name: "starter", sessions: 3, delayMinMs: 0, delayMaxMs: 0 };
    assert.equal((await plans.set(edit)).monthly, 20_000);
    assert.equal((await plans.set({ ...edit, monthly: null })).monthly, null);
    const fresh = await plans.set({ ...edit, name: "fresh" });
    assert.deepEqual([fresh.daily, fresh.monthly, fresh.requestsPerMinute], [null, null, 600]);
  }));

Deno.test("a plan that makes no sense is refused with every reason, and nothing is written", () =>
  withSendWorld(async ({ kv }) => {
    const plans = makePlans(kv);
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
