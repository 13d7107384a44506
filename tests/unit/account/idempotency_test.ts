import assert from "node:assert/strict";
import { IDEMPOTENCY_MS, sweepAnswers } from "../../../src/account/idempotency.ts";
import { keys } from "../../../src/store/keys.ts";
import { Change } from "../../../src/store/kv.ts";
import { keysUnder, withSendWorld } from "../../support/send_world.ts";

const REQUEST = { accountId: "acc_1", key: "order-7", fingerprint: "aaaa" };

Deno.test("the same key and body give the first answer, another body is refused", () =>
  withSendWorld(async ({ idempotency, kv }) => {
    assert.equal(await idempotency.find(REQUEST), null);
    const change = new Change();
    idempotency.keep(change, REQUEST, { id: 1 });
    await kv.commit(change);
    assert.deepEqual(await idempotency.find(REQUEST), { id: 1 });
    await assert.rejects(idempotency.find({ ...REQUEST, fingerprint: "bbbb" }), { code: "idempotency_key_reused" });
  }));

Deno.test("a key belongs to its account", () =>
  withSendWorld(async ({ idempotency }) => {
    await idempotency.once(REQUEST, () => Promise.resolve("first"));
    assert.equal(await idempotency.find({ ...REQUEST, accountId: "acc_2", fingerprint: "bbbb" }), null);
  }));

Deno.test("a key is free again after 24 hours, and not a millisecond earlier", () =>
  withSendWorld(async ({ idempotency, runtime }) => {
    await idempotency.once(REQUEST, () => Promise.resolve("first"));
    await runtime.clock.advance(IDEMPOTENCY_MS - 1);
    assert.equal(await idempotency.find(REQUEST), "first");
    await runtime.clock.advance(1);
    assert.equal(await idempotency.find(REQUEST), null);
    assert.equal(await idempotency.once({ ...REQUEST, fingerprint: "bbbb" }, () => Promise.resolve("new")), "new");
  }));

Deno.test("fifty at once do the work once and all get its answer", () =>
  withSendWorld(async ({ idempotency }) => {
    let runs = 0;
    const work = () => Promise.resolve(`answer ${++runs}`);
    const answers = await Promise.all(Array.from({ length: 50 }, () => idempotency.once(REQUEST, work)));
    assert.deepEqual(new Set(answers), new Set(["answer 1"]));
  }));

Deno.test("work that fails keeps nothing, so that the next try does it", () =>
  withSendWorld(async ({ idempotency }) => {
    const failing = () => Promise.reject(new Error("no"));
    const first = idempotency.once(REQUEST, failing);
    const second = idempotency.once(REQUEST, () => Promise.resolve("second"));
    await assert.rejects(first, /no/);
    assert.equal(await second, "second");
  }));

Deno.test("the sweep removes answers that are over, and only those", () =>
  withSendWorld(async ({ idempotency, kv, runtime }) => {
    for (let i = 0; i < 600; i++) {
      const change = new Change();
      idempotency.keep(change, { ...REQUEST, key: `old-${i}` }, i);
      await kv.commit(change);
    }
    await runtime.clock.advance(IDEMPOTENCY_MS - 1);
    await idempotency.once({ ...REQUEST, key: "young" }, () => Promise.resolve("young"));
    await runtime.clock.advance(1);
    assert.equal(await sweepAnswers(kv, runtime.clock.now()), 600);
    assert.equal((await keysUnder(kv, keys.answers())).length, 1);
    assert.equal(await idempotency.find({ ...REQUEST, key: "young" }), "young");
  }));
