import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import v8 from "node:v8";
import { makeAsk, makeSweepCalls } from "../../../src/cluster/calls.ts";
import { clusterKeys } from "../../../src/cluster/rows.ts";
import { makeLineAnswers, makeRemoteLines } from "../../../src/line/remote.ts";
import { NetworkRefusal, NetworkTimeout } from "../../../src/whatsapp/connection.ts";
import { Problem } from "../../../src/errors.ts";
import { connectedWorld } from "../../support/line_world.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { SkewedClock, WRONG_CLOCKS } from "../../support/skewed_clock.ts";
import { systemRandom } from "../../../src/runtime.ts";
import { StoreError } from "../../../src/store/kv.ts";
import { makeSeal, sealKey } from "../../../src/store/seal.ts";

const SEAL = makeSeal(sealKey("a secret of the tests"), systemRandom);

/** A line that a worker holds, as an API in another process sees it. */
async function stage(aheadMs = 0) {
  const world = await connectedWorld();
  const { runtime, bell, supervisor } = world;
  const held = new Set(["ses_1"]);
  const answers = makeLineAnswers({
    kv: new MemoryKv(world.disk),
    bell,
    seal: SEAL,
    runtime,
    supervisor,
    answersFor: (lineId) => held.has(lineId),
  });
  await answers.start();
  const kv = new MemoryKv(world.disk);
  const asking = { ...runtime, clock: new SkewedClock(world.clock, aheadMs) };
  const remote = makeRemoteLines(makeAsk({ kv, bell, seal: SEAL, runtime: asking }));
  const rowsLeft = async () => {
    const prefixes = [clusterKeys.calls(), clusterKeys.answers()];
    const rows = await Promise.all(prefixes.map((prefix) => Array.fromAsync(kv.list<unknown>({ prefix }))));
    return rows.flat().length;
  };
  const stop = async () => {
    const stopping = Promise.all([answers.stop(), supervisor.stop()]);
    await world.clock.advance(10_000);
    await stopping;
  };
  const sweep = makeSweepCalls(kv);
  return { world, sweep, asking, held, kv, remote, rowsLeft, stop };
}

/** What the promise comes to while time passes. */
async function after<T>(s: Awaited<ReturnType<typeof stage>>, ms: number, promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  await s.world.clock.advance(ms);
  return await promise;
}

Deno.test("what is asked of a line that another process holds comes back, and leaves no rows", async () => {
  const s = await stage();
  const check = await after(s, 100, s.remote.connection("ses_1")!.checkNumber("34600000002"));
  assert.deepEqual(check, await s.world.supervisor.connection("ses_1")!.checkNumber("34600000002"));
  const health = await after(s, 100, s.remote.health("ses_1"));
  assert.equal(health.connectedSince, (await s.world.supervisor.health("ses_1")).connectedSince);
  assert.equal(await s.rowsLeft(), 0);
  await s.stop();
});

Deno.test("what is asked of another process is sealed", async () => {
  const s = await stage();
  const written: string[] = [];
  const { commit } = s.kv;
  s.kv.commit = (change) => {
    written.push(...change.mutations.map((mutation) => Buffer.from(v8.serialize(mutation)).toString("latin1")));
    return commit.call(s.kv, change);
  };
  await after(s, 100, s.remote.connection("ses_1")!.checkNumber("34600000002"));
  assert.ok(written.some((row) => row.includes("checkNumber")));
  assert.ok(written.every((row) => !row.includes("34600000002")));
  await s.stop();
});

Deno.test("a ring that was lost costs a second, no answer", async () => {
  const s = await stage();
  s.world.bell.deaf = true;
  assert.ok(await after(s, 2_500, s.remote.health("ses_1")));
  await s.stop();
});

Deno.test("where nobody holds the line the caller hears it within 10 s, and nothing is done later", async () => {
  const s = await stage();
  s.held.clear();
  await assert.rejects(after(s, 10_000, s.remote.health("ses_1")), NetworkTimeout);
  assert.equal(await s.rowsLeft(), 0);
  await s.stop();
});

Deno.test("errors come over as what they are", async () => {
  const s = await stage();
  s.world.network.of("ses_1").checkNumber = () => Promise.reject(new NetworkRefusal("Not now.", { code: 463 }));
  await assert.rejects(
    after(s, 100, s.remote.connection("ses_1")!.checkNumber("34600000002")),
    (error) => error instanceof NetworkRefusal && error.code === 463 && error.message === "Not now.",
  );
  // The worker's lease has gone elsewhere in this moment, say.
  s.world.network.of("ses_1").checkNumber = () => Promise.reject(new StoreError("locked", "nothing was written"));
  await assert.rejects(after(s, 100, s.remote.connection("ses_1")!.checkNumber("34600000002")), StoreError);
  s.held.add("ses_2");
  await assert.rejects(
    after(s, 100, s.remote.connection("ses_2")!.checkNumber("34600000002")),
    (error) => error instanceof Problem && error.code === "session_not_connected",
  );
  await s.stop();
});

Deno.test("what is no question to a line is refused", async () => {
  const s = await stage();
  const ask = makeAsk({ kv: s.kv, bell: s.world.bell, seal: SEAL, runtime: s.world.runtime });
  for (const method of ["close", "groups.constructor", "toString", "logout"]) {
    await assert.rejects(after(s, 100, ask("ses_1", method, [])), /failed/);
  }
  await s.stop();
});

Deno.test("questions and answers that nobody came for are swept", async () => {
  const s = await stage();
  s.held.clear();
  const lost = s.remote.health("ses_1").catch(() => {});
  await s.world.clock.advance(0);
  assert.equal(await s.rowsLeft(), 1);
  const { sweep } = s;
  assert.deepEqual([await sweep(), await sweep(), await sweep()], [0, 1, 0]);
  await s.world.clock.advance(10_000);
  await lost;
  await s.stop();
});

for (const [name, ms] of WRONG_CLOCKS) {
  for (const when of ["before it asks", "while it waits"]) {
    Deno.test(`a question is answered though the clock of who asks is set ${name} ${when}`, async () => {
      const s = await stage(when === "before it asks" ? ms : 0);
      s.held.clear();
      const health = s.remote.health("ses_1");
      health.catch(() => {});
      await s.world.clock.advance(1_500);
      if (when === "while it waits") s.asking.clock.jump(ms);
      // Another process's.
      await s.world.clock.during(s.sweep());
      await s.world.clock.advance(1_500);
      s.held.add("ses_1");
      await after(s, 2_500, health);
      assert.equal(await s.rowsLeft(), 0);
      await s.stop();
    });
  }
}
