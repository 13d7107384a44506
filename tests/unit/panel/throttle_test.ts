import assert from "node:assert/strict";
import { makeThrottle } from "../../../src/panel/logins/throttle.ts";
import { ManualClock } from "../../support/runtime.ts";

Deno.test("attempts count before they cost anything, however many come at once", async () => {
  const throttle = makeThrottle(new ManualClock());
  let proofs = 0;
  const wrong = () => throttle.attempt("198.51.100.7", { login: "ana" }, () => Promise.resolve(++proofs < 0));
  const outcomes = await Promise.allSettled(Array.from({ length: 80 }, wrong));
  assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 5);
  assert.equal(proofs, 5);
});

Deno.test("what succeeds, or breaks off for another reason, counts as no failure", async () => {
  const throttle = makeThrottle(new ManualClock());
  const attempt = (prove: () => Promise<boolean>) => throttle.attempt("198.51.100.7", { login: "ana" }, prove);
  for (let i = 0; i < 60; i++) {
    assert.equal(await attempt(() => Promise.resolve(true)), true);
    await assert.rejects(attempt(() => Promise.reject(new Error("the store is away"))), /store is away/);
  }
});
