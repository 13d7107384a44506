/** A short run of `deno task chaos paced`, which kills twenty times. */
import assert from "node:assert/strict";
import { GIVE_UP_AFTER_MS } from "../../src/cli/client.ts";
import { pacedRun } from "../../scripts/chaos/paced_run.ts";

Deno.test("through three kills every message arrives once, in order, under one id, with its pause", async () => {
  const { accepted, kills, broken } = await pacedRun({
    messages: 40,
    lines: 2,
    kills: 3,
    delayMinMs: 100,
    delayMaxMs: 1_300,
    killAfterMs: [200, 1_000],
    // The unit tests hold the pauses to the millisecond; other tests run beside this one.
    atOnceMs: GIVE_UP_AFTER_MS,
    report: () => {},
  });
  assert.deepEqual({ accepted, kills, broken }, { accepted: 40, kills: 3, broken: [] });
});
