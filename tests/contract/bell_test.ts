/** The contract of `src/store/bell.ts` on every engine: on the real clock, and on one that moves only when told. */
import assert from "node:assert/strict";
import { type Runtime, systemClock } from "../../src/runtime.ts";
import type { Bell } from "../../src/store/bell.ts";
import { denoKvBell, openDenoKvBell } from "../../src/store/deno_kv/bell.ts";
import { clockedQueue } from "../support/bell.ts";
import { testRuntime } from "../support/runtime.ts";

interface Engine {
  name: string;
  /** The clock that the engine keeps, and how a test lets time pass. */
  open(): Promise<{ bell: Bell; runtime: Runtime; pass(ms: number): Promise<void> }>;
}

const ENGINES: Engine[] = [
  {
    name: "Deno KV's queue in memory",
    async open() {
      const runtime = { ...testRuntime(), clock: systemClock };
      return { bell: await openDenoKvBell({ runtime }), runtime, pass: () => Promise.resolve() };
    },
  },
  {
    name: "a queue on the test's clock",
    open() {
      const runtime = testRuntime();
      const queue = clockedQueue(runtime.clock, () => runtime.random.between(0, 150));
      return Promise.resolve({
        bell: denoKvBell(queue, { runtime }),
        runtime,
        pass: (ms) => runtime.clock.advance(ms),
      });
    },
  },
];

/** Topics that rang, with a promise for the next ones. */
function ear({ clock }: Runtime) {
  const rung: { topic: string; at: number }[] = [];
  let heard: () => void = () => {};
  return {
    rung,
    topics: () => rung.map(({ topic }) => topic),
    wake(topic: string) {
      rung.push({ topic, at: clock.now() });
      heard();
    },
    async until(count: number) {
      while (rung.length < count) await new Promise<void>((resolve) => heard = resolve);
    },
  };
}

type World = Awaited<ReturnType<Engine["open"]>>;

for (const engine of ENGINES) {
  const test = (sentence: string, run: (world: World) => Promise<void>) =>
    Deno.test(`${engine.name}: ${sentence}`, async () => {
      const world = await engine.open();
      try {
        await run(world);
      } finally {
        await world.bell.close();
      }
    });

  test("a ring reaches all who hear the topic, at once, and nobody else", ({ bell, runtime }) => {
    const [lines, one, others] = [ear(runtime), ear(runtime), ear(runtime)];
    bell.hear("line/", lines.wake);
    bell.hear("line/1", one.wake);
    bell.hear("other/", others.wake);
    bell.ring("line/1");
    bell.ring("line/2");
    assert.deepEqual(lines.topics(), ["line/1", "line/2"]);
    assert.deepEqual(one.topics(), ["line/1"]);
    assert.deepEqual(others.topics(), []);
    return Promise.resolve();
  });

  test("who stops hearing hears no more", ({ bell, runtime }) => {
    const lines = ear(runtime);
    const stop = bell.hear("line/", lines.wake);
    bell.ring("line/1");
    stop();
    bell.ring("line/2");
    assert.deepEqual(lines.topics(), ["line/1"]);
    return Promise.resolve();
  });

  test("a ring that was set comes at its time, never early, whether that is near or far", async (world) => {
    const { bell, runtime } = world;
    const lines = ear(runtime);
    bell.hear("line/", lines.wake);
    const now = runtime.clock.now();
    const times = new Map([["line/near", now + 50], ["line/far", now + 450]]);
    for (const [topic, at] of times) bell.ringAt(topic, at);
    await world.pass(450);
    await lines.until(2);
    for (const { topic, at } of lines.rung) {
      assert.ok(at >= times.get(topic)!, `${topic} rang early`);
      assert.ok(at <= times.get(topic)! + 2_000, `${topic} rang late`);
    }
  });

  test("a ring for a time that has passed comes at once", async (world) => {
    const lines = ear(world.runtime);
    world.bell.hear("line/", lines.wake);
    world.bell.ringAt("line/1", world.runtime.clock.now() - 60_000);
    await world.pass(0);
    await lines.until(1);
  });

  test("a later time for a topic adds nothing, an earlier one takes its place, and it can be set again", async (world) => {
    const { bell, runtime } = world;
    const lines = ear(runtime);
    bell.hear("line/", lines.wake);
    const now = runtime.clock.now();
    bell.ringAt("line/1", now + 60 * 24 * 3_600_000);
    bell.ringAt("line/1", now + 500);
    bell.ringAt("line/1", now + 300);
    for (let i = 0; i < 50; i++) bell.ringAt("line/1", now + 310 + i);
    await world.pass(300);
    await lines.until(1);
    bell.ringAt("line/marker", now + 1_000);
    await world.pass(700);
    await lines.until(2);
    assert.deepEqual(lines.topics(), ["line/1", "line/marker"]);
    bell.ringAt("line/1", runtime.clock.now() + 10);
    await world.pass(10);
    await lines.until(3);
  });

  test("a hearer that throws takes the ring from nobody", async (world) => {
    const { bell, runtime } = world;
    const lines = ear(runtime);
    bell.hear("", () => {
      throw new Error("a hearer");
    });
    bell.hear("line/", lines.wake);
    bell.ring("line/1");
    bell.ringAt("line/2", runtime.clock.now() + 250);
    await world.pass(250);
    await lines.until(2);
  });

  test("nothing that was set rings after the close", async ({ bell, runtime, pass }) => {
    const [lines, witnessed] = [ear(runtime), ear(runtime)];
    bell.hear("line/", lines.wake);
    bell.ringAt("line/near", runtime.clock.now() + 10);
    bell.ringAt("line/far", runtime.clock.now() + 400);
    await bell.close();
    await bell.close();
    const witness = await engine.open();
    try {
      witness.bell.hear("", witnessed.wake);
      witness.bell.ringAt("witness", witness.runtime.clock.now() + 500);
      await Promise.all([pass(500), witness.pass(500), witnessed.until(1)]);
    } finally {
      await witness.bell.close();
    }
    assert.deepEqual(lines.topics(), []);
  });
}
