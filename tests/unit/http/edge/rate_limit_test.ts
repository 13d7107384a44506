/** Past fifty refusals a second of one tenant each waits before it goes out. */
import assert from "node:assert/strict";
import { makeHoldRefusal } from "../../../../src/http/edge/rate_limit.ts";
import { settle, testRuntime } from "../../../support/runtime.ts";

Deno.test("the fifty-first refusal of a second waits, those of others and of the next second do not", async () => {
  const { clock } = testRuntime();
  const hold = makeHoldRefusal(clock);
  let out = 0;
  const refuse = (tenant: string) => void hold(tenant).then(() => out++);
  for (let i = 0; i < 60; i++) refuse("a");
  refuse("b");
  await settle();
  assert.equal(out, 51);
  await clock.advance(500);
  assert.equal(out, 61);
  await clock.advance(500);
  refuse("a");
  await settle();
  assert.equal(out, 62);
});
