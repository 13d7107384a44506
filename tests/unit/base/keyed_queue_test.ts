import assert from "node:assert/strict";
import { makeInTurn } from "../../../src/base/keyed_queue.ts";

Deno.test("work of one name runs one after another, in the order in which it was asked for", async () => {
  const inTurn = makeInTurn();
  let running = 0;
  const order: number[] = [];
  const results = await Promise.all(Array.from({ length: 10 }, (_, i) =>
    inTurn("a", async () => {
      assert.equal(running++, 0);
      order.push(i);
      for (let turn = 0; turn < 10 - i; turn++) await Promise.resolve();
      running--;
      return i;
    })));
  assert.deepEqual(order, results);
  assert.deepEqual(order, order.toSorted((a, b) => a - b));
});

Deno.test("work of another name does not wait", async () => {
  const inTurn = makeInTurn();
  const held = Promise.withResolvers<string>();
  const slow = inTurn("a", () => held.promise);
  assert.equal(await inTurn("b", () => Promise.resolve("fast")), "fast");
  held.resolve("slow");
  assert.equal(await slow, "slow");
});

Deno.test("work that fails says so to who asked for it, and the next has its turn", async () => {
  const inTurn = makeInTurn();
  const failing = inTurn("a", () => Promise.reject(new Error("no")));
  const next = inTurn("a", () => Promise.resolve("next"));
  await assert.rejects(failing, /no/);
  assert.equal(await next, "next");
});
