import assert from "node:assert/strict";
import { KeyedQueue } from "../../../src/base/keyed_queue.ts";

Deno.test("work of one key runs one after another, in the order in which it was asked for", async () => {
  const queue = new KeyedQueue();
  let running = 0;
  const order: number[] = [];
  const results = await Promise.all(Array.from({ length: 10 }, (_, i) =>
    queue.add("a", async () => {
      assert.equal(running++, 0);
      order.push(i);
      for (let turn = 0; turn < 10 - i; turn++) await Promise.resolve();
      running--;
      return i;
    })));
  assert.deepEqual(order, results);
  assert.deepEqual(order, order.toSorted((a, b) => a - b));
});

Deno.test("work of another key does not wait", async () => {
  const queue = new KeyedQueue();
  const held = Promise.withResolvers<string>();
  const slow = queue.add("a", () => held.promise);
  assert.equal(await queue.add("b", () => Promise.resolve("fast")), "fast");
  held.resolve("slow");
  assert.equal(await slow, "slow");
});

Deno.test("work that fails says so to who asked for it, and the next has its turn", async () => {
  const queue = new KeyedQueue();
  const failing = queue.add("a", () => Promise.reject(new Error("no")));
  const next = queue.add("a", () => Promise.resolve("next"));
  await assert.rejects(failing, /no/);
  assert.equal(await next, "next");
});

Deno.test("it is idle when the last work of every key has ended, failed or not", async () => {
  const queue = new KeyedQueue();
  const held = Promise.withResolvers<void>();
  const ended: string[] = [];
  const first = queue.add("a", () => held.promise).finally(() => ended.push("first"));
  const second = queue.add("b", () => Promise.reject(new Error("no"))).catch(() => ended.push("second"));
  const idle = queue.onIdle().then(() => ended.push("idle"));
  await second;
  held.resolve();
  await Promise.all([first, idle]);
  assert.deepEqual(ended, ["second", "first", "idle"]);
  await queue.onIdle();
});
