import assert from "node:assert/strict";
import { charge, NO_USAGE, quotaLeft, type Usage, usageAt } from "../../../src/account/quota.ts";
import { Problem } from "../../../src/errors.ts";
import { aPlan } from "../../support/send_world.ts";

const NOON = Date.UTC(2026, 0, 15, 12);

function refusal(run: () => unknown): Problem {
  try {
    run();
  } catch (error) {
    assert(error instanceof Problem);
    assert.equal(error.code, "quota_exceeded");
    return error;
  }
  throw new Error("it was not refused");
}

Deno.test("the last message of a quota passes and the next one is refused", () => {
  const plan = aPlan({ daily: 3 });
  let usage: Usage = NO_USAGE;
  for (let i = 0; i < 3; i++) usage = charge(usage, 1, { plan, now: NOON });
  assert.deepEqual(quotaLeft(plan, usage), { daily: 0, monthly: null });
  const problem = refusal(() => charge(usage, 1, { plan, now: NOON }));
  assert.deepEqual(problem.extras.members, { remaining: { daily: 0, monthly: null } });
});

Deno.test("a bulk that is one too many is refused whole, with what is left", () => {
  const plan = aPlan({ monthly: 100 });
  const usage = charge(NO_USAGE, 60, { plan, now: NOON });
  const problem = refusal(() => charge(usage, 41, { plan, now: NOON }));
  assert.deepEqual(problem.extras.members, { remaining: { daily: null, monthly: 40 } });
  assert.equal(charge(usage, 40, { plan, now: NOON }).monthly, 100);
});

Deno.test("the daily count starts anew at 00:00 UTC, not a millisecond earlier", () => {
  const plan = aPlan({ daily: 1 });
  const midnight = Date.UTC(2026, 0, 16);
  const usage = charge(NO_USAGE, 1, { plan, now: midnight - 2 });
  refusal(() => charge(usage, 1, { plan, now: midnight - 1 }));
  assert.equal(charge(usage, 1, { plan, now: midnight }).daily, 1);
});

Deno.test("the monthly count survives the days of a month and starts anew with the next", () => {
  const plan = aPlan({ monthly: 2 });
  let usage = charge(NO_USAGE, 1, { plan, now: Date.UTC(2024, 1, 28) });
  usage = charge(usage, 1, { plan, now: Date.UTC(2024, 1, 29, 23, 59, 59) });
  refusal(() => charge(usage, 1, { plan, now: Date.UTC(2024, 2, 1) - 1 }));
  assert.equal(charge(usage, 1, { plan, now: Date.UTC(2024, 2, 1) }).monthly, 1);
});

Deno.test("Retry-After reaches to the next UTC day, or to the next month where that is what is full", () => {
  const evening = Date.UTC(2026, 11, 31, 23, 59, 30);
  const daily = aPlan({ daily: 0 });
  assert.equal(refusal(() => charge(NO_USAGE, 1, { plan: daily, now: evening })).extras.retryAfterSeconds, 30);
  const monthly = aPlan({ daily: 0, monthly: 0 });
  const twoDaysBefore = Date.UTC(2026, 11, 30);
  assert.equal(
    refusal(() => charge(NO_USAGE, 1, { plan: monthly, now: twoDaysBefore })).extras.retryAfterSeconds,
    2 * 24 * 60 * 60,
  );
});

Deno.test("a clock that is set back does not give a day's quota twice", () => {
  const plan = aPlan({ daily: 1 });
  const usage = charge(NO_USAGE, 1, { plan, now: NOON });
  refusal(() => charge(usage, 1, { plan, now: NOON - 24 * 60 * 60 * 1000 }));
});

Deno.test("a quota that was used up by a clock years ahead is there again once the clock is right", () => {
  const plan = aPlan({ daily: 1, monthly: 1 });
  const usage = charge(NO_USAGE, 1, { plan, now: Date.UTC(2038, 0, 19) });
  const right = charge(usage, 1, { plan, now: NOON });
  assert.deepEqual(right, { day: "2026-01-15", daily: 1, month: "2026-01", monthly: 1 });
  refusal(() => charge(right, 1, { plan, now: NOON }));
});

Deno.test("an account that was moved to a smaller plan has nothing left, not less than nothing", () => {
  const usage = charge(NO_USAGE, 50, { plan: aPlan(), now: NOON });
  assert.deepEqual(quotaLeft(aPlan({ daily: 10, monthly: 60 }), usageAt(usage, NOON)), { daily: 0, monthly: 10 });
});
