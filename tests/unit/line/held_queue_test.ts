/** The queue in its owner's hands: moved, cancelled with its quota, paused. */
import assert from "node:assert/strict";
import { EMPTY_LEDGER } from "../../../src/message/history/ledger.ts";
import { type Ledger, messageKeys } from "../../../src/message/rows.ts";
import { utcDay } from "../../../src/account/quota.ts";
import { Change } from "../../../src/store/kv.ts";
import { ACCOUNT, connectedWorld } from "../../support/line_world.ts";

const PAUSE_MS = 10_000;
const HOUR_MS = 3_600_000;
const PACED = { delays: { minMs: PAUSE_MS, maxMs: PAUSE_MS } };

Deno.test("a queued message is moved to another time and another priority, and its ttl with it", async () => {
  const world = await connectedWorld(PACED);
  await world.accept();
  await world.clock.advance(0);
  const [first, second] = [await world.accept(), await world.accept("ses_1", { to: "34600000003" })];
  const later = world.clock.now() + 5 * PAUSE_MS;
  const moved = await world.queued.reschedule(ACCOUNT, first.id, { sendAt: later });
  assert.equal(moved.expiresAt - later, first.expiresAt - first.createdAt);
  assert.equal((await world.queued.reschedule(ACCOUNT, second.id, { priority: "high" })).priority, "high");
  await world.clock.advance(4 * PAUSE_MS);
  assert.deepEqual(world.network.departures.slice(1).map((d) => d.networkId), [second.networkId]);
  const sooner = world.clock.now() + 1;
  await world.queued.reschedule(ACCOUNT, first.id, { sendAt: sooner });
  await world.clock.advance(PAUSE_MS);
  assert.equal((await world.message(first.id)).sentAt, sooner);
  assert.equal(await world.queueLength(), 0);
  await assert.rejects(() => world.queued.reschedule(ACCOUNT, first.id, { priority: "low" }), { code: "not_editable" });
  await assert.rejects(() => world.queued.reschedule("acc_2", first.id, { priority: "low" }), { code: "not_found" });
  await world.supervisor.stop();
});

Deno.test("a message that was moved ends as expired by its new time, not by the old one", async () => {
  const world = await connectedWorld();
  world.network.opensByItself = false;
  world.network.of("ses_1").ends("lost");
  const { id, expiresAt } = await world.accept("ses_1", { expiresAt: world.clock.now() + 1_000 });
  await world.queued.reschedule(ACCOUNT, id, { sendAt: expiresAt + HOUR_MS });
  await world.clock.advance(30 * 60_000);
  assert.equal((await world.message(id)).status, "queued");
  await world.clock.advance(2 * HOUR_MS);
  assert.equal((await world.message(id)).error?.code, "expired");
  await world.supervisor.stop();
});

Deno.test("cancelling gives the quota back, to the day and the month of the accept", async () => {
  const world = await connectedWorld(PACED);
  await world.accept();
  await world.clock.advance(0);
  const now = world.clock.now();
  const usage = { day: utcDay(now), daily: 10, month: utcDay(now).slice(0, 7), monthly: 40 };
  await world.kv.commit(new Change().set(messageKeys.ledger(ACCOUNT), { ...EMPTY_LEDGER, usage }));
  const [today, yesterday] = [await world.accept(), await world.accept("ses_1", { createdAt: now - 24 * HOUR_MS })];
  const used = async () => {
    const { daily, monthly } = (await world.kv.get<Ledger>(messageKeys.ledger(ACCOUNT))).value!.usage;
    return [daily, monthly];
  };
  await world.queued.cancel(ACCOUNT, today.id);
  assert.deepEqual(await used(), [9, 39]);
  await world.queued.cancel(ACCOUNT, yesterday.id);
  assert.deepEqual(await used(), [9, 38]);
  await assert.rejects(() => world.queued.cancel(ACCOUNT, today.id), { code: "not_cancellable" });
  assert.deepEqual(await used(), [9, 38], "once");
  await world.supervisor.stop();
});

Deno.test("a paused queue lets nothing leave, also after a restart, and says so; resumed, it goes on", async () => {
  const world = await connectedWorld();
  await world.lines.pauseQueue(ACCOUNT, "ses_1", true);
  const { id } = await world.accept();
  await world.clock.advance(HOUR_MS);
  await world.supervisor.stop();
  await world.boot();
  await world.clock.advance(HOUR_MS);
  assert.equal(world.network.departures.length, 0);
  const [waiting] = await world.forecast.queue(ACCOUNT, "ses_1", { limit: 10 });
  assert.deepEqual(waiting!.waitsFor, { kind: "paused", until: null });
  assert.equal(waiting!.estimatedDepartureAt, null);
  await world.lines.pauseQueue(ACCOUNT, "ses_1", false);
  await world.clock.advance(0);
  assert.equal((await world.message(id)).status, "sent");
  await assert.rejects(() => world.lines.pauseQueue("acc_2", "ses_1", true), { code: "not_found" });
  await world.supervisor.stop();
});

Deno.test("the view shows what is scheduled last, with its time; a bulk says when its last message leaves", async () => {
  const world = await connectedWorld(PACED);
  await world.accept();
  await world.clock.advance(0);
  const due = world.clock.now() + HOUR_MS;
  const scheduled = await world.accept("ses_1", { sendAt: due });
  const waiting = await world.accept();
  const members = [await world.accept("ses_1", { bulkId: "blk_1" }), await world.accept("ses_1", { bulkId: "blk_1" })];
  const [{ historyNumber: firstHistoryNumber }, sessionId] = [members[0]!, "ses_1"];
  const bulk = { accountId: ACCOUNT, sessionId, total: 2, firstHistoryNumber, createdAt: world.clock.now() };
  await world.kv.commit(new Change().set(messageKeys.bulk("blk_1"), bulk));
  const view = await world.forecast.queue(ACCOUNT, "ses_1", {
    limit: 10,
  });
  assert.deepEqual(view.map(({ message, waitsFor }) => [message.id, waitsFor]), [
    [waiting.id, null],
    ...members.map(({ id }) => [id, null]),
    [scheduled.id, { kind: "schedule", until: due }],
  ]);
  const { etaAt, queued } = await world.forecast.bulk(
    ACCOUNT,
    "blk_1",
  );
  assert.deepEqual([queued, etaAt], [2, view[2]!.estimatedDepartureAt]);
  await world.supervisor.stop();
});

Deno.test("a status post leaves out who has opted out since it was accepted, and ends where nobody is left", async () => {
  const world = await connectedWorld();
  const audiences: (readonly string[])[] = [];
  const { outcome } = world.network;
  world.network.outcome = (message, connection) => {
    if (message.body.kind === "status") audiences.push(message.body.audience);
    return outcome(message, connection);
  };
  const sendAt = world.clock.now() + HOUR_MS;
  const post = (audience: string[]) => {
    const content = { kind: "status", of: { kind: "text", text: "open today" }, audience } as const;
    return world.accept("ses_1", { to: "status@broadcast", content, sendAt, expiresAt: sendAt + HOUR_MS });
  };
  const [some, nobody] = [await post(["34600000001", "34600000002"]), await post(["34600000002"])];
  await world.optOuts.add(ACCOUNT, "34600000002");
  await world.clock.advance(HOUR_MS);
  assert.deepEqual(audiences, [["34600000001"]]);
  assert.equal((await world.message(some.id)).status, "sent");
  assert.equal((await world.message(nobody.id)).error?.code, "recipient_opted_out");
  await world.supervisor.stop();
});

/** A status post to two people that is prepared, and waits for the pause after another message. */
async function preparedPost() {
  const world = await connectedWorld({ delays: { minMs: 10_000, maxMs: 10_000 } });
  const audiences: (readonly string[])[] = [];
  world.network.outcome = ({ to, body }) => {
    if (body.kind === "status") audiences.push(body.audience);
    return { kind: "sent", chat: to };
  };
  await world.accept();
  await world.clock.advance(0);
  const audience = ["34600000001", "34600000002"];
  const content = { kind: "status", of: { kind: "text", text: "open today" }, audience } as const;
  await world.accept("ses_1", { to: "status@broadcast", content });
  await world.clock.advance(1_000);
  assert.equal(world.network.preparations.length, 2);
  return { world, audiences };
}

Deno.test("a status post that was prepared before its queue was paused leaves out who opted out in the meantime", async () => {
  const { world, audiences } = await preparedPost();
  await world.lines.pauseQueue(ACCOUNT, "ses_1", true);
  await world.clock.advance(60_000);
  await world.optOuts.add(ACCOUNT, "34600000002");
  await world.lines.pauseQueue(ACCOUNT, "ses_1", false);
  await world.clock.advance(1_000);
  assert.deepEqual(audiences, [["34600000001"]]);
  await world.supervisor.stop();
});

Deno.test("a status post that was prepared within the pause before it leaves out who opted out in the meantime", async () => {
  const { world, audiences } = await preparedPost();
  await world.optOuts.add(ACCOUNT, "34600000002");
  await world.clock.advance(10_000);
  assert.deepEqual(audiences, [["34600000001"]]);
  await world.supervisor.stop();
});
