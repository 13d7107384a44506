/** The contract of `src/store/alarm.ts` on every engine, on the real clock: engines keep their own time. */
import assert from "node:assert/strict";
import { systemRuntime } from "../../src/runtime.ts";
import type { AlarmClock } from "../../src/store/alarm.ts";
import { timerAlarmClock } from "../../src/store/timer_alarm.ts";
import { testRuntime } from "../support/runtime.ts";

const runtime = systemRuntime(testRuntime().log);

interface Engine {
  name: string;
  open(folder: string): Promise<{ alarms: AlarmClock; close(): void }>;
}

const ENGINES: Engine[] = [
  {
    name: "alarms on timers",
    open: () => {
      const alarms = timerAlarmClock({ runtime });
      return Promise.resolve({ alarms, close: alarms.close });
    },
  },
];

/** Topics that rang, with a promise for the next ones. */
function ear() {
  const rung: { topic: string; at: number }[] = [];
  let heard: () => void = () => {};
  return {
    rung,
    ring(topic: string) {
      rung.push({ topic, at: runtime.clock.now() });
      heard();
    },
    async until(count: number) {
      while (rung.length < count) await new Promise<void>((resolve) => heard = resolve);
    },
  };
}

for (const engine of ENGINES) {
  const test = (sentence: string, run: (alarms: AlarmClock) => Promise<void>) =>
    Deno.test(`${engine.name}: ${sentence}`, async () => {
      const folder = await Deno.makeTempDir();
      const { alarms, close } = await engine.open(folder);
      try {
        await run(alarms);
      } finally {
        close();
        await Deno.remove(folder, { recursive: true });
      }
    });

  test("an alarm rings at its time, at its listener only", async (alarms) => {
    const lines = ear();
    const others = ear();
    alarms.listen("line/", lines.ring);
    alarms.listen("other/", others.ring);
    const at = runtime.clock.now() + 150;
    await alarms.set("line/1", at);
    await alarms.set("other/1", at);
    await Promise.all([lines.until(1), others.until(1)]);
    assert.deepEqual(lines.rung.map((ring) => ring.topic), ["line/1"]);
    assert.deepEqual(others.rung.map((ring) => ring.topic), ["other/1"]);
    assert.ok(lines.rung[0]!.at >= at - 20, "not early");
    assert.ok(lines.rung[0]!.at <= at + 2_000, "not much late");
  });

  test("an alarm for a time that has passed rings at once", async (alarms) => {
    const lines = ear();
    alarms.listen("line/", lines.ring);
    await alarms.set("line/1", runtime.clock.now() - 60_000);
    await lines.until(1);
  });

  test("a later alarm for a topic adds nothing, an earlier one does, and it can be set again", async (alarms) => {
    const lines = ear();
    alarms.listen("line/", lines.ring);
    const now = runtime.clock.now();
    await alarms.set("line/1", now + 60 * 24 * 3_600_000);
    await alarms.set("line/1", now + 100);
    for (let i = 0; i < 50; i++) await alarms.set("line/1", now + 200 + i);
    await lines.until(1);
    await alarms.set("line/marker", runtime.clock.now() + 500);
    await lines.until(2);
    assert.deepEqual(lines.rung.map((ring) => ring.topic), ["line/1", "line/marker"]);
    await alarms.set("line/1", runtime.clock.now() + 10);
    await lines.until(3);
  });

  test("a listener that throws leaves the clock going", async (alarms) => {
    const lines = ear();
    alarms.listen("bad/", () => {
      throw new Error("listener");
    });
    alarms.listen("line/", lines.ring);
    await alarms.set("bad/1", runtime.clock.now());
    await alarms.set("line/1", runtime.clock.now() + 200);
    await lines.until(1);
  });
}
