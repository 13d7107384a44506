import assert from "node:assert/strict";
import { Idempotency, type Keep, type RepeatableRequest, sweepAnswers } from "../../../src/account/idempotency.ts";
import { accountKeys } from "../../../src/account/rows.ts";
import { Problem } from "../../../src/errors.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import { makeSeal, sealKey } from "../../../src/store/seal.ts";
import { settle } from "../../support/runtime.ts";
import { keysUnder, type SendWorld, sendWorld, withSendWorld } from "../../support/send_world.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

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
    await runtime.clock.advance(DAY_MS - 1);
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

Deno.test("work is done once when two processes are asked for it at once", () =>
  withSendWorld(async (world) => {
    const { first, end, second, clock } = await inTwoProcesses(world, REQUEST);
    end.resolve("the first's");
    assert.equal(await first, "the first's");
    assert.equal(await clock.during(second), "the first's");
  }));

Deno.test("another body is refused when another process has answered the first meanwhile", () =>
  withSendWorld(async (world) => {
    const { first, end, second, clock } = await inTwoProcesses(world, { ...REQUEST, fingerprint: "bbbb" });
    end.resolve("the first's");
    assert.equal(await first, "the first's");
    await assert.rejects(clock.during(second), { code: "idempotency_key_reused" });
  }));

Deno.test("a key is free as soon as the work of another process has failed", () =>
  withSendWorld(async (world) => {
    const { first, end, second, clock, waitedMs } = await inTwoProcesses(world, { ...REQUEST, fingerprint: "bbbb" });
    end.reject(new Problem("network_timeout", "No answer."));
    await assert.rejects(first, { code: "network_timeout" });
    assert.equal(await clock.during(second), "the second's");
    assert.ok(waitedMs() >= 1_000 && waitedMs() < 60_000);
  }));

Deno.test("work of a process that has died is done by another after a minute", () =>
  withSendWorld(async (world) => {
    const { second, clock, waitedMs } = await inTwoProcesses(world, REQUEST);
    assert.equal(await clock.during(second), "the second's");
    assert.ok(waitedMs() >= 60_000);
    assert.equal(await world.idempotency.find(REQUEST), "the second's");
  }));

Deno.test("the sweep removes what a process that has died leaves, not before a minute", () =>
  withSendWorld(async ({ idempotency, kv, runtime }) => {
    const begun = Promise.withResolvers<void>();
    void idempotency.once(REQUEST, () => {
      begun.resolve();
      return new Promise(() => {});
    });
    await begun.promise;
    assert.equal(await sweepAnswers(kv, runtime.clock.now() + 59_999), 0);
    assert.equal(await sweepAnswers(kv, runtime.clock.now() + 60_000), 1);
  }));

/** Begins work in one process, and has another asked while it lasts; resolves when that one waits, or has worked. */
async function inTwoProcesses({ idempotency, kv, runtime }: SendWorld, asked: RepeatableRequest) {
  const { clock } = runtime;
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<string>();
  const first = idempotency.once(REQUEST, () => {
    begun.resolve();
    return end.promise;
  });
  await begun.promise;
  const begunAt = clock.now();
  let workedAt = NaN;
  const second = sendWorld(kv, runtime).idempotency.once(asked, () => {
    workedAt = clock.now();
    return Promise.resolve("the second's");
  });
  while (Number.isNaN(workedAt) && clock.nextTimer() === null) await settle();
  return { first, end, second, clock, waitedMs: () => workedAt - begunAt };
}

Deno.test("work that keeps its answer itself is done once by fifty at once, and its answer is in its commit", () =>
  withSendWorld(async ({ idempotency, kv }) => {
    const work = async (keep: Keep<string>) => {
      const change = new Change().set(
        lineKeys.lineCount("acc_1"),
        ((await kv.get(lineKeys.lineCount("acc_1"))).value ?? 0) + 1,
      );
      keep(change, "the answer");
      assert.ok(await kv.commit(change));
      throw new Error("the client was told nothing");
    };
    const runs = Array.from({ length: 50 }, () => idempotency.onceInCommit(REQUEST, work));
    const outcomes = await Promise.allSettled(runs);
    assert.equal(outcomes.filter(({ status }) => status === "rejected").length, 1);
    assert.equal(await idempotency.find(REQUEST), "the answer");
    assert.equal((await kv.get(lineKeys.lineCount("acc_1"))).value, 1);
    const other = { ...REQUEST, fingerprint: "bbbb" };
    await assert.rejects(idempotency.onceInCommit(other, work), { code: "idempotency_key_reused" });
  }));

Deno.test("work that keeps its answer itself is not written when another process has kept one meanwhile", () =>
  withSendWorld(async ({ idempotency, kv, runtime }) => {
    const other = sendWorld(kv, runtime).idempotency;
    const version = await idempotency.onceInCommit(REQUEST, async (keep: Keep<string | null>) => {
      await other.once(REQUEST, () => Promise.resolve("the other's"));
      const change = new Change();
      keep(change, "mine");
      return await kv.commit(change);
    });
    assert.equal(version, null);
    assert.equal(await idempotency.find(REQUEST), "the other's");
  }));

Deno.test("work that is refused for what another process did under the same key gets that answer", () =>
  withSendWorld(async ({ idempotency, kv, runtime }) => {
    const other = sendWorld(kv, runtime).idempotency;
    const answer = await idempotency.onceInCommit(REQUEST, async () => {
      await other.once(REQUEST, () => Promise.resolve("the only session"));
      throw new Problem("session_limit_reached", "The plan allows 1 session.");
    });
    assert.equal(answer, "the only session");
    const refused = () => Promise.reject(new Problem("session_limit_reached", "The plan allows 1 session."));
    const unused = { ...REQUEST, key: "unused" };
    await assert.rejects(idempotency.onceInCommit(unused, refused), { code: "session_limit_reached" });
  }));

Deno.test("the answer of work that keeps it itself takes the place of one that is over", () =>
  withSendWorld(async ({ idempotency, kv, runtime }) => {
    await idempotency.once(REQUEST, () => Promise.resolve("old"));
    await runtime.clock.advance(DAY_MS);
    const work = async (keep: Keep<string>) => {
      const change = new Change();
      keep(change, "new");
      assert.ok(await kv.commit(change));
      return "new";
    };
    assert.equal(await idempotency.onceInCommit({ ...REQUEST, fingerprint: "bbbb" }, work), "new");
    assert.equal(await idempotency.find({ ...REQUEST, fingerprint: "bbbb" }), "new");
  }));

Deno.test("the sweep removes answers that are over, and only those", () =>
  withSendWorld(async ({ idempotency, kv, runtime }) => {
    for (let i = 0; i < 600; i++) {
      const change = new Change();
      idempotency.keep(change, { ...REQUEST, key: `old-${i}` }, i);
      await kv.commit(change);
    }
    await runtime.clock.advance(DAY_MS - 1);
    await idempotency.once({ ...REQUEST, key: "young" }, () => Promise.resolve("young"));
    await runtime.clock.advance(1);
    assert.equal(await sweepAnswers(kv, runtime.clock.now()), 600);
    assert.equal((await keysUnder(kv, accountKeys.answers())).length, 1);
    assert.equal(await idempotency.find({ ...REQUEST, key: "young" }), "young");
  }));

Deno.test("a process that is alone does what its predecessor was killed during at once, without a claim", () =>
  withSendWorld(async ({ kv, runtime }) => {
    const seal = makeSeal(sealKey("a secret"), runtime.random);
    const alone = () => new Idempotency({ kv, runtime, seal, isShared: false });
    const begun = Promise.withResolvers<void>();
    void alone().once(REQUEST, () => {
      begun.resolve();
      return new Promise<string>(() => {});
    });
    await begun.promise;
    assert.deepEqual(await keysUnder(kv, accountKeys.answers()), []);
    assert.equal(await alone().once(REQUEST, () => Promise.resolve("again")), "again");
  }));
