/** Whoever goes through many rows rests in between. */
import assert from "node:assert/strict";
import { yielding } from "../../../src/base/batches.ts";
import { testRuntime } from "../../support/runtime.ts";

Deno.test("after two hundred items it rests for as long as those took", async () => {
  const { clock } = testRuntime();
  async function* slowly() {
    for (let i = 0; i < 450; i++) {
      await new Promise<void>((resolve) => clock.after(1, resolve));
      yield i;
    }
  }
  const at = new Map<number, number>();
  const begun = clock.now();
  const reading = (async () => {
    for await (const item of yielding(slowly(), clock)) at.set(item, clock.now() - begun);
  })();
  await clock.advance(2_000);
  await reading;
  assert.deepEqual([0, 199, 200, 399, 400, 449].map((item) => at.get(item)), [1, 200, 401, 600, 801, 850]);
});
