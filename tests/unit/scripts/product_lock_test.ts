/** The lock of the product: what it loads, in the versions of deno.lock, and nothing that only tests load. */
import assert from "node:assert/strict";
import { PRODUCT_LOCK, productLock } from "../../../scripts/product_lock.ts";

Deno.test("product.lock is what scripts/product_lock.ts makes of deno.lock", async () => {
  const text = await Deno.readTextFile(PRODUCT_LOCK);
  assert.equal(text, await productLock(), "run: deno run -A scripts/product_lock.ts");
  const names = Object.keys(JSON.parse(text).npm);
  for (const used of [/^@whiskeysockets\/baileys@/, /^pg@/, /^commander@/]) assert.ok(names.some((n) => used.test(n)));
  for (const unused of [/^playwright-core@/, /^typescript@/, /^recheck/]) assert.ok(!names.some((n) => unused.test(n)));
});
