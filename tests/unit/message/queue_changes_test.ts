import assert from "node:assert/strict";
import { chatsOn } from "../../support/chats.ts";
import { Change, type Kv } from "../../../src/store/kv.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { type Ledger, messageKeys } from "../../../src/message/rows.ts";
import { EMPTY_LEDGER } from "../../../src/message/history/ledger.ts";
import { giveBack, settleAllRefunds, settleRefunds } from "../../../src/message/history/counts.ts";
import { utcDay } from "../../../src/account/quota.ts";
import { expireMessages } from "../../../src/message/queue/across_lines.ts";
import { makeQueued } from "../../../src/message/queue_changes.ts";
import { Recorder } from "../../../src/message/record.ts";
import { ringQueue } from "../../../src/message/queue/place.ts";
import { ACCOUNT, connectedWorld, type World } from "../../support/line_world.ts";
import { plainIncoming } from "../../support/incoming.ts";
import { aBulk, aSend, sendWorld, withSendWorld } from "../../support/send_world.ts";
import { testBell, testEvents } from "../../support/bell.ts";

const PAUSES = { delays: { minMs: 60_000, maxMs: 60_000 } };

async function acceptBulk(world: World, total: number) {
  const messages = [];
  for (let i = 0; i < total; i++) messages.push(await world.accept("ses_1", { bulkId: "blk_1" }));
  const firstHistoryNumber = messages[0]!.historyNumber;
  const bulk = { accountId: ACCOUNT, sessionId: "ses_1", total, firstHistoryNumber, createdAt: world.clock.now() };
  const day = utcDay(world.clock.now());
  const usage = { day, daily: total, month: day.slice(0, 7), monthly: total };
  const ledger = { ...EMPTY_LEDGER, usage, messages: messages.length, openBlock: messages.map(({ id }) => id) };
  await world.kv.commit(
    new Change().set(messageKeys.bulk("blk_1"), bulk).set(messageKeys.openBulk("blk_1"), true)
      .set(messageKeys.ledger(ACCOUNT), ledger),
  );
  return messages;
}

Deno.test("a queued message is cancelled once, with its event, and never leaves", async () => {
  const world = await connectedWorld(PAUSES);
  await world.accept();
  await world.clock.advance(0);
  const { id } = await world.accept();
  const cancelled = await world.queued.cancel(ACCOUNT, id);
  assert.deepEqual([cancelled.id, cancelled.status, cancelled.error?.code], [id, "failed", "cancelled"]);
  await assert.rejects(() => world.queued.cancel(ACCOUNT, id), { code: "not_cancellable" });
  await world.clock.advance(200_000);
  assert.equal(world.network.departures.length, 1);
  assert.equal((await world.events("message.failed")).length, 1);
  await world.supervisor.stop();
});

Deno.test("what is on its way, sent, unknown, or another account's can't be cancelled", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => null;
  const { id } = await world.accept();
  await world.clock.advance(0);
  await assert.rejects(() => world.queued.cancel(ACCOUNT, id), { code: "not_cancellable" });
  world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
  await world.clock.advance(0);
  await assert.rejects(() => world.queued.cancel(ACCOUNT, id), { code: "not_cancellable" });
  await assert.rejects(() => world.queued.cancel("acc_2", id), { code: "not_found" });
  await assert.rejects(() => world.queued.cancel(ACCOUNT, "msg_none"), { code: "not_found" });
  await assert.rejects(() => world.queued.cancelBulk(ACCOUNT, "blk_none"), { code: "not_found" });
  await world.supervisor.stop();
});

Deno.test("a message that may have left already can't be called back while it waits for its next attempt", async () => {
  const world = await connectedWorld();
  world.network.opensByItself = false;
  world.network.outcome = () => ({ kind: "unknown", detail: "no ack" });
  const { id } = await world.accept();
  await world.clock.advance(1_000);
  assert.equal((await world.message(id)).status, "queued");
  await assert.rejects(() => world.queued.cancel(ACCOUNT, id), { code: "not_cancellable" });
  await world.supervisor.stop();
});

Deno.test("of a bulk all that has not left is cancelled, and the messages around it go on", async () => {
  const world = await connectedWorld(PAUSES);
  const bulk = await acceptBulk(world, 130);
  const single = await world.accept();
  ringQueue(world.bell, "ses_1");
  await world.clock.advance(0);
  const before = world.disk.commits;
  const cancelled = await world.queued.cancelBulk(ACCOUNT, "blk_1");
  assert.deepEqual(cancelled.map(({ id }) => id), bulk.slice(1).map(({ id }) => id));
  // Nine a commit, where one takes ten checks; and what follows them.
  assert.ok(world.disk.commits - before <= 129 / 9 + 3, `${world.disk.commits - before} commits`);
  assert.equal((await world.message(bulk[0]!.id)).status, "sent");
  await world.clock.advance(200_000);
  assert.equal((await world.message(single.id)).status, "sent");
  assert.equal(world.network.departures.length, 2);
  const finished = await world.events("bulk.finished");
  assert.deepEqual(finished.map(({ data }) => data), [{ bulkId: "blk_1", total: 130, sent: 1, failed: 129 }]);
  assert.deepEqual(await world.queued.cancelBulk(ACCOUNT, "blk_1"), [], "nothing of it waits any more");
  await assert.rejects(() => world.queued.cancelBulk("acc_2", "blk_1"), { code: "not_found" });
  await world.supervisor.stop();
});

Deno.test("a bulk of which a crash left the cancelling half done gets back what it was charged, and can be cancelled again", async () => {
  const total = 25;
  let partly = 0;
  for (let commits = 0, done = false; !done; commits++) {
    const world = await connectedWorld({ ...PAUSES, seed: commits + 1 });
    await world.kv.commit(new Change().set(lineKeys.queuePaused("ses_1"), true));
    const bulk = await acceptBulk(world, total);
    world.kv.commitsLeft = commits;
    done = await world.queued.cancelBulk(ACCOUNT, "blk_1").then(() => true, () => false);
    world.crash();
    await world.boot();

    const failed = (await Promise.all(bulk.map(({ id }) => world.message(id)))).filter(({ error }) => error).length;
    if (failed > 0 && failed < total) partly++;
    await settleAllRefunds(world.kv);
    const charged = async () => (await world.kv.get<Ledger>(messageKeys.ledger(ACCOUNT))).value!.usage;
    assert.deepEqual([(await charged()).daily, (await charged()).monthly], [total - failed, total - failed]);
    assert.equal((await world.queued.cancelBulk(ACCOUNT, "blk_1")).length, total - failed);
    assert.equal((await charged()).daily, 0);
    assert.equal((await world.events("message.failed")).length, total);
    assert.equal(await world.queueLength(), 0);
    await world.supervisor.stop();
  }
  assert.ok(partly > 1, "it was never killed in the middle");
});

Deno.test("a message that is cancelled in the moment of its departure is either cancelled or sent", async () => {
  const ends = new Set<string>();
  // The cancel begins ever so little later, until the departure is the faster one.
  for (let later = 0; later < 200; later++) {
    const world = await connectedWorld();
    const { id } = await world.accept();
    for (let i = 0; i < later; i++) await Promise.resolve();
    const cancelled = await world.queued.cancel(ACCOUNT, id).then(() => true, () => false);
    await world.clock.advance(0);
    const { status } = await world.message(id);
    assert.equal(status, cancelled ? "failed" : "sent");
    assert.equal(world.network.departures.length, cancelled ? 0 : 1);
    assert.equal((await world.events("message.sent", "message.failed")).length, 1);
    ends.add(status);
    await world.supervisor.stop();
  }
  assert.equal(ends.size, 2);
});

Deno.test("what is cancelled of a day that is over, while its count goes, is given back to the month", async () => {
  const world = await connectedWorld(PAUSES);
  const usage = { day: "2026-01-15", daily: 3, month: "2026-01", monthly: 9 };
  const refund = messageKeys.refund(ACCOUNT, "2026-01-14");
  await world.kv.commit(
    new Change().set(messageKeys.ledger(ACCOUNT), { ...EMPTY_LEDGER, usage }).add(refund, 0),
  );
  let isCancelled = false;
  const racing: Kv = {
    ...world.kv,
    async commit(change) {
      if (!isCancelled) await world.kv.commit(new Change().add(refund, 1));
      isCancelled = true;
      return await world.kv.commit(change);
    },
  };
  await settleRefunds(racing, ACCOUNT);
  await settleRefunds(world.kv, ACCOUNT);
  const { value: ledger } = await world.kv.get<Ledger>(messageKeys.ledger(ACCOUNT));
  assert.deepEqual(ledger?.usage, { ...usage, monthly: 8 });
  await world.supervisor.stop();
});

Deno.test("a message of a bulk that is put off, and back, does not keep the others from expiring", () =>
  withSendWorld(async ({ accept, kv, runtime }) => {
    const sendAt = runtime.clock.now() + 60_000;
    const { messages } = await accept(aBulk(3, { sendAt, ttlMs: 60_000 }));
    const nothing = () => Promise.reject(new Error("nothing is cancelled"));
    const recorder = { cancel: nothing, withdraw: nothing };
    const queued = makeQueued({
      kv,
      clock: runtime.clock,
      recorder,
      laneOf: () => Promise.resolve("cold"),
      bell: testBell(runtime),
    });
    await queued.reschedule("acc_1", messages[0]!.id, { sendAt: sendAt + 3_600_000 });
    await queued.reschedule("acc_1", messages[0]!.id, { sendAt });
    await runtime.clock.advance(120_001);
    const over: string[] = [];
    const expire = (id: string) => Promise.resolve(over.push(id));
    await expireMessages({ kv, runtime }, () => ({ expire }) as unknown as Recorder);
    assert.deepEqual(new Set(over), new Set(messages.map(({ id }) => id)));
  }));

Deno.test("a message that is put off in the moment it would expire does not", () =>
  withSendWorld(async ({ accept, kv, runtime }) => {
    const { messages: [accepted] } = await accept(aSend({ ttlMs: 60_000 }));
    const { id } = accepted!;
    await runtime.clock.advance(60_000);
    const events = testEvents(kv, runtime);
    const files = { remove: () => Promise.resolve() };
    const recorder = new Recorder({
      kv,
      chats: chatsOn(kv),
      runtime,
      events,
      files,
      sessionName: () => Promise.resolve(""),
    });
    const laneOf = () => Promise.resolve("cold" as const);
    const queued = makeQueued({ kv, clock: runtime.clock, recorder, laneOf, bell: testBell(runtime) });
    const slow: Kv = {
      ...kv,
      async getMany(keys) {
        const slots = await kv.getMany(keys);
        await queued.reschedule("acc_1", id, { sendAt: runtime.clock.now() + 60_000 });
        return slots as never;
      },
    };
    await expireMessages({ kv: slow, runtime }, () => recorder);
    assert.equal((await kv.get(messageKeys.message(id))).value?.status, "queued");
    await expireMessages({ kv, runtime }, () => recorder);
    await runtime.clock.advance(120_000);
    await expireMessages({ kv, runtime }, () => recorder);
    assert.equal((await kv.get(messageKeys.message(id))).value?.error?.code, "expired");
  }));

Deno.test("what is accepted with the clock before the counted day, and then cancelled, is given back to that day", () =>
  withSendWorld(async ({ accept, kv, runtime }) => {
    await accept(aSend());
    const { key, value: ledger } = await kv.get(messageKeys.ledger("acc_1"));
    const usage = { day: "2026-01-16", daily: 4, month: "2026-01", monthly: 9 };
    await kv.commit(new Change().set(key, { ...ledger!, usage }));
    const restarted = sendWorld(kv, runtime);
    const { messages } = await restarted.accept(aSend());
    const usageNow = async () => (await kv.get(messageKeys.ledger("acc_1"))).value!.usage;
    assert.deepEqual(await usageNow(), { ...usage, daily: 5, monthly: 10 });
    const { value: message } = await kv.get(messageKeys.message(messages[0]!.id));
    const change = new Change();
    giveBack(change, message!);
    await kv.commit(change);
    await settleRefunds(kv, "acc_1");
    assert.deepEqual(await usageNow(), usage);
  }));

const WITHDRAWALS = {
  "a tag": (world: World, id: string) => world.queued.cancelAll(ACCOUNT, [id]),
  "a reply": (world: World) =>
    world.network.of("ses_1").receive(plainIncoming({
      networkId: "IN1",
      chat: "34600000002@s.whatsapp.net",
      number: "34600000002",
      timestamp: Math.floor(world.clock.now() / 1000),
    })),
};
for (const [name, withdraw] of Object.entries(WITHDRAWALS)) {
  const fields = { manner: { tags: ["t"], cancelOnReply: true } } as const;
  const isLost = { kind: "hold", detail: "not connected" } as const;

  Deno.test(`what was on its way when ${name} cancelled it, and comes back, never leaves, with its quota back`, async () => {
    const world = await connectedWorld();
    world.network.outcome = () => null;
    const { id } = await world.accept("ses_1", fields);
    await world.clock.advance(0);
    assert.equal((await world.message(id)).status, "processing");
    await withdraw(world, id);
    world.network.of("ses_1").answers(isLost);
    world.network.outcome = ({ to }) => ({ kind: "sent", chat: to });
    await world.clock.advance(60_000);
    const { status, error, attempts } = await world.message(id);
    assert.deepEqual([status, attempts, world.network.departures.length], ["failed", 0, 1]);
    assert.match(error!.code, /^cancelled/);
    assert.equal((await world.events("message.failed")).length, 1);
    assert.equal(await world.queueLength(), 0);
    const refunds = await Array.fromAsync(world.kv.list({ prefix: messageKeys.refunds(ACCOUNT) }));
    assert.deepEqual(refunds.map(({ value }) => value), [1n]);
    await world.supervisor.stop();
  });

  Deno.test(`what was on its way when ${name} cancelled it, and arrives, is told as sent`, async () => {
    const world = await connectedWorld();
    world.network.outcome = () => null;
    const { id } = await world.accept("ses_1", fields);
    await world.clock.advance(0);
    await withdraw(world, id);
    world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
    await world.clock.advance(60_000);
    assert.deepEqual([(await world.message(id)).status, (await world.events("message.failed")).length], ["sent", 0]);
    await world.supervisor.stop();
  });
}
