import assert from "node:assert/strict";
import { Waker } from "../../../../src/line/runner/waker.ts";
import { settle } from "../../../support/runtime.ts";

Deno.test("a wake-up ends the rest, and one during the work ends the next rest at once", async () => {
  const waker = new Waker();
  waker.looks();
  const resting = waker.rest(1_000);
  assert.equal(waker.restsUntil, 1_000);
  waker.wake();
  await resting;
  assert.equal(waker.restsUntil, 0);
  waker.looks();
  waker.wake();
  assert.ok(waker.woken);
  await waker.rest(Infinity);
});

Deno.test("whoever waits for it to rest goes on when it does, and not while it was woken", async () => {
  const waker = new Waker();
  let idle = 0;
  const wait = async () => {
    await waker.idle();
    idle++;
  };
  void wait();
  await settle();
  assert.equal(idle, 0);
  const resting = waker.rest(Infinity);
  await settle();
  assert.equal(idle, 1);
  void wait();
  await settle();
  assert.equal(idle, 2);
  waker.wake();
  void wait();
  await resting;
  await settle();
  assert.equal(idle, 2);
  waker.end();
  await settle();
  assert.equal(idle, 3);
});
