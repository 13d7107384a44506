import assert from "node:assert/strict";
import { makeProbe } from "../../../src/data/probe.ts";
import { type Kv, StoreError } from "../../../src/store/kv.ts";
import { ManualClock } from "../../support/runtime.ts";

Deno.test("a store that takes no writes is not ready, and is once it does", async () => {
  const clock = new ManualClock();
  let commits = 0;
  let full = true;
  const kv = {
    commit: () => {
      commits++;
      return full ? Promise.reject(new StoreError("full", "no space")) : Promise.resolve(true);
    },
  } as unknown as Kv;
  const probe = makeProbe(kv, clock);
  await assert.rejects(probe(), StoreError);
  full = false;
  await assert.rejects(probe(), StoreError);
  assert.equal(commits, 1, "it is not written for everybody who asks");
  await clock.advance(1_000);
  await probe();
});
