import assert from "node:assert/strict";
import { makeForecast } from "../../../src/line/forecast.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { Change, type Kv } from "../../../src/store/kv.ts";
import { ACCOUNT, connectedWorld } from "../../support/line_world.ts";

const PAUSE_MS = 60_000;

Deno.test("a message that ends while the queue is read is not shown", async () => {
  const world = await connectedWorld({ delays: { minMs: PAUSE_MS, maxMs: PAUSE_MS } });
  await world.accept();
  await world.clock.advance(0);
  const [first, second, third] = [await world.accept(), await world.accept(), await world.accept()];
  /** Cancels the second message between the reads of its place and of itself. */
  const racing = new Proxy<Kv>(world.kv, {
    get: (kv, name: keyof Kv) =>
      name === "getMany"
        ? async (wanted: Parameters<Kv["getMany"]>[0]) => {
          await world.queued.cancel(ACCOUNT, second!.id);
          return await kv.getMany(wanted);
        }
        : (kv[name] as () => unknown).bind(kv),
  });
  const shown = await makeForecast({ kv: racing, clock: world.clock, callers: world.callers }).queue(
    ACCOUNT,
    "ses_1",
    {
      limit: 10,
    },
  );
  assert.deepEqual(shown.map(({ message, place }) => [message.id, place]), [[first!.id, 1], [third!.id, 2]]);
  await world.supervisor.stop();
});

Deno.test("a message to a new chat waits for it while the network lets the account start none, one to a known chat does not", async () => {
  const world = await connectedWorld({ delays: { minMs: PAUSE_MS, maxMs: PAUSE_MS } });
  const forecast = makeForecast({ kv: world.kv, clock: world.clock, callers: world.callers });
  const known = { to: "34600000001" };
  await world.accept("ses_1", known);
  await world.clock.advance(0);
  const [again, cold] = [await world.accept("ses_1", known), await world.accept("ses_1", { to: "34600000002" })];
  const line = await world.line();
  for (const until of [world.clock.now() + 3_600_000, null]) {
    const restriction = { kind: "DEFAULT", until };
    await world.kv.commit(new Change().set(lineKeys.line("ses_1"), { ...line, restriction }));
    const shown = await forecast.queue(ACCOUNT, "ses_1", { limit: 10 });
    assert.deepEqual(
      shown.map(({ message, waitsFor, estimatedDepartureAt }) => [message.id, waitsFor, estimatedDepartureAt]),
      [
        [again.id, null, world.clock.now() + PAUSE_MS],
        [cold.id, { kind: "new_chats", until }, until],
      ],
    );
  }
  await world.supervisor.stop();
});

Deno.test("what waits for its line to be connected says so, unless it has its own time or is paused", async () => {
  const world = await connectedWorld();
  await world.lines.want(ACCOUNT, "ses_1", "paused");
  await world.clock.advance(0);
  const due = world.clock.now() + 3_600_000;
  const [now, later] = [await world.accept(), await world.accept("ses_1", { sendAt: due })];
  const line = { kind: "line", until: null };
  const view = await world.forecast.queue(ACCOUNT, "ses_1", { limit: 10 });
  assert.deepEqual(view.map(({ message, waitsFor }) => [message.id, waitsFor]), [
    [now.id, line],
    [later.id, { kind: "schedule", until: due }],
  ]);
  assert.deepEqual((await world.forecast.load(ACCOUNT, "ses_1")).waitsFor, line);
  await world.lines.pauseQueue(ACCOUNT, "ses_1", true);
  assert.equal((await world.forecast.load(ACCOUNT, "ses_1")).waitsFor?.kind, "paused");
  await world.supervisor.stop();
});
