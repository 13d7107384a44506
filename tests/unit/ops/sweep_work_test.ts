/** What the sweeps remove while the clock is ahead of the confirmed time. */
import assert from "node:assert/strict";
import { makeEventLog } from "../../../src/event/log.ts";
import { eventKeys } from "../../../src/event/rows.ts";
import { DiskShares } from "../../../src/media/fair_shares.ts";
import { sweepWork } from "../../../src/ops/sweep_work.ts";
import { makeTimeKeeper } from "../../../src/ops/time_keeper.ts";
import { Change } from "../../../src/store/kv.ts";
import { testBell } from "../../support/bell.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";
import { keysUnder } from "../../support/send_world.ts";

const DAY_MS = 24 * 3_600_000;

Deno.test("a clock that is 400 days ahead removes nothing, also after a restart, until it is confirmed", async () => {
  const kv = new MemoryKv();
  let runtime = testRuntime();
  const { clock } = runtime;
  const events = makeEventLog(kv, runtime);
  const change = new Change();
  events.append(change, {
    accountId: "acc_1",
    sessionId: "ses_1",
    sessionName: "line",
    event: "session.connected",
    data: { phone: "447700900123" },
  });
  await kv.commit(change);
  const left = async () => (await keysUnder(kv, eventKeys.events("acc_1"))).length;
  const sweep = () => {
    const work = sweepWork(
      {
        kv,
        runtime,
        events,
        eventDays: 30,
        eventBytes: 1e9,
        historyDays: 365,
        bell: testBell(runtime),
        shares: new DiskShares(),
      } as unknown as Parameters<typeof sweepWork>[0],
    );
    return clock.during(work.events(new AbortController().signal));
  };
  const keeper = () => makeTimeKeeper(kv, runtime);

  let running = keeper();
  await running.start();
  await clock.advance(20 * 60_000);
  clock.jump(400 * DAY_MS);
  await clock.advance(20 * 60_000);
  assert.equal(await sweep(), 0);
  assert.ok(runtime.lines.some(({ msg, hours }) => String(msg).includes("the clock jumped ahead") && hours === 9600));
  await running.stop();

  runtime = testRuntime(2, clock);
  running = keeper();
  await running.start();
  await clock.advance(60_000);
  assert.equal(await sweep(), 0);
  assert.equal(await left(), 1);

  runtime.confirmed.confirm(clock.now());
  assert.equal(await sweep(), 1);
  assert.equal(await left(), 0);
  await running.stop();
});
