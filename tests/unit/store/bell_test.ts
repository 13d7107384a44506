import assert from "node:assert/strict";
import { join } from "node:path";
import { denoKvBell } from "../../../src/store/deno_kv/bell.ts";
import { openNative } from "../../../src/store/deno_kv/deno_kv.ts";
import { denoKvFiles } from "../../../src/store/deno_kv/file_engine.ts";
import { watchChanges } from "../../../src/store/bell.ts";
import { type ManualClock, testRuntime } from "../../support/runtime.ts";
import { WRONG_CLOCKS } from "../../support/skewed_clock.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("whoever hears of changes is called after one, within 2 s, and not without", async () => {
  const { clock } = testRuntime();
  let changed = true;
  const changes = watchChanges({ hasChanged: () => changed, clock });
  let calls = 0;
  const deaf = changes.hear(() => calls++);
  await changes.start();
  await changes.start();
  await clock.advance(2_000);
  assert.equal(calls, 1);
  changed = false;
  await clock.advance(60_000);
  assert.equal(calls, 1);
  changed = true;
  await clock.advance(2_000);
  assert.equal(calls, 2);
  deaf();
  await clock.advance(60_000);
  await changes.stop();
  assert.equal(calls, 2);
});

Deno.test("the watch of a file sees commits of every connection, and nothing in what writes nothing", async () => {
  await using temp = await tempFolder();
  const path = join(temp.path, "store.db");
  const { clock } = testRuntime();
  const one = await openNative(path, { runtime: { clock } });
  const other = await openNative(path, { runtime: { clock } });
  const watch = denoKvFiles.watch(path);
  try {
    watch.hasChanged();
    assert.equal(watch.hasChanged(), false);
    for (const kv of [one, other]) {
      await kv.set(["row"], 1);
      assert.equal(watch.hasChanged(), true);
      assert.equal(watch.hasChanged(), false);
    }
    assert.equal((await one.get(["row"])).value, 1);
    assert.equal((await one.atomic().check({ key: ["row"], versionstamp: null }).set(["row"], 2).commit()).ok, false);
    assert.equal(watch.hasChanged(), false);
  } finally {
    watch.close();
    watch.close();
    one.close();
    other.close();
  }
});

/** Delivers by the system's time, as Deno KV's does. */
function systemQueue(clock: ManualClock): Parameters<typeof denoKvBell>[0] {
  const waiting: { at: number; value: unknown }[] = [];
  return {
    enqueue(value, { delay = 0 } = {}) {
      waiting.push({ at: clock.wall() + delay, value });
      return Promise.resolve({ ok: true, versionstamp: "0" });
    },
    listenQueue(deliver) {
      const look = () => {
        for (const next of waiting.splice(0)) next.at <= clock.wall() ? deliver(next.value) : waiting.push(next);
        clock.after(100, look);
      };
      look();
      return Promise.resolve();
    },
    close() {},
  };
}

for (const [name, ms] of WRONG_CLOCKS) {
  Deno.test(`a ring comes once and in time though the clock is set ${name} before it`, async () => {
    const runtime = testRuntime();
    const { clock } = runtime;
    const bell = denoKvBell(systemQueue(clock), { runtime });
    let rings = 0;
    bell.hear("line/", () => rings++);
    bell.ringAt("line/1", clock.now() + 10_000);
    await clock.advance(5_000);
    clock.jump(ms);
    await clock.advance(300);
    assert.equal(rings, ms > 0 ? 1 : 0);
    await clock.advance(4_500);
    assert.equal(rings, ms > 0 ? 1 : 0);
    await clock.advance(500);
    assert.equal(rings, 1);
    await clock.advance(60_000);
    assert.equal(rings, 1);
    await bell.close();
  });
}
