/** The contract of `src/store/bell.ts` as tests over any engine. */
import assert from "node:assert/strict";
import { GIVE_UP_AFTER_MS } from "../../src/cli/client.ts";
import type { Runtime } from "../../src/runtime.ts";
import type { Bell } from "../../src/store/bell.ts";

export interface BellEngine {
  name: string;
  /** The clock that the engine keeps, and how a test lets time pass. */
  open(): Promise<World>;
}

interface World {
  bell: Bell;
  runtime: Runtime;
  pass(ms: number): Promise<void>;
}

/** A queue that had lost it would ring after a minute. A slow and busy machine adds some seconds. */
const LATE_MS = 30_000;

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
      const late = setTimeout(() => heard(), GIVE_UP_AFTER_MS);
      const end = Date.now() + GIVE_UP_AFTER_MS;
      while (rung.length < count) {
        if (Date.now() >= end) assert.fail(`${rung.length} of ${count} rings came: ${rung.map(({ topic }) => topic)}`);
        await new Promise<void>((resolve) => heard = resolve);
      }
      clearTimeout(late);
    },
  };
}

/** Registers the contract's tests for one engine. */
export function bellContract(engine: BellEngine): void {
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
      assert.ok(at <= times.get(topic)! + LATE_MS, `${topic} rang late`);
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

/** Bells of two processes, and how to cut what lies between them for a moment. */
export interface SharedBells {
  a: Bell;
  b: Bell;
  runtime: Runtime;
  cut(): Promise<void>;
}

/** Registers the tests of a bell that many processes share. */
export function sharedBellContract(name: string, open: () => Promise<SharedBells>): void {
  const test = (sentence: string, run: (bells: SharedBells) => Promise<void>) =>
    Deno.test(`${name}: ${sentence}`, async () => {
      const bells = await open();
      try {
        await run(bells);
      } finally {
        await Promise.all([bells.a.close(), bells.b.close()]);
      }
    });

  test("a ring of one process reaches those in another who hear the topic, and rings once in its own", async ({ a, b, runtime }) => {
    const [own, other, deaf] = [ear(runtime), ear(runtime), ear(runtime)];
    a.hear("line/", own.wake);
    b.hear("line/", other.wake);
    b.hear("webhook/", deaf.wake);
    const topics = Array.from({ length: 600 }, (_, i) => `line/${i}-${"x".repeat(20)}`);
    for (const topic of topics) a.ring(topic);
    a.ring("line/last");
    await other.until(topics.length + 1);
    assert.deepEqual(new Set(other.topics()), new Set([...topics, "line/last"]));
    b.ring("line/back");
    await own.until(topics.length + 2);
    assert.deepEqual(own.topics(), [...topics, "line/last", "line/back"]);
    assert.deepEqual(deaf.topics(), []);
  });

  test("after the way was cut, no ring is lost unseen", async ({ a, b, runtime, cut }) => {
    const other = ear(runtime);
    b.hear("line/", other.wake);
    a.ring("line/before");
    await other.until(1);
    await cut();
    a.ring("line/after");
    while (!other.topics().some((topic) => topic === "line/" || topic === "line/after")) {
      await other.until(other.rung.length + 1);
    }
  });
}
