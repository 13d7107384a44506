import assert from "node:assert/strict";
import { Change } from "../../../src/store/kv.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { EMPTY_LEDGER } from "../../../src/message/history/ledger.ts";
import { ACCOUNT, connectedWorld, type World } from "../../support/line_world.ts";

const PAUSES = { delays: { minMs: 60_000, maxMs: 60_000 } };

async function acceptBulk(world: World, total: number) {
  const messages = [];
  for (let i = 0; i < total; i++) messages.push(await world.accept("ses_1", { bulkId: "blk_1" }));
  const firstHistoryNumber = messages[0]!.historyNumber;
  const bulk = { accountId: ACCOUNT, sessionId: "ses_1", total, firstHistoryNumber, createdAt: world.clock.now() };
  const ledger = { ...EMPTY_LEDGER, messages: messages.length, openBlock: messages.map(({ id }) => id) };
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
  const cancelled = await world.cancel.message(ACCOUNT, id);
  assert.deepEqual([cancelled.id, cancelled.status, cancelled.error?.code], [id, "failed", "cancelled"]);
  await assert.rejects(() => world.cancel.message(ACCOUNT, id), { code: "not_cancellable" });
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
  await assert.rejects(() => world.cancel.message(ACCOUNT, id), { code: "not_cancellable" });
  world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
  await world.clock.advance(0);
  await assert.rejects(() => world.cancel.message(ACCOUNT, id), { code: "not_cancellable" });
  await assert.rejects(() => world.cancel.message("acc_2", id), { code: "not_found" });
  await assert.rejects(() => world.cancel.message(ACCOUNT, "msg_none"), { code: "not_found" });
  await assert.rejects(() => world.cancel.bulk(ACCOUNT, "blk_none"), { code: "not_found" });
  await world.supervisor.stop();
});

Deno.test("a message that may have left already can't be called back while it waits for its next attempt", async () => {
  const world = await connectedWorld();
  world.network.opensByItself = false;
  world.network.outcome = () => ({ kind: "unknown", detail: "no ack" });
  const { id } = await world.accept();
  await world.clock.advance(1_000);
  assert.equal((await world.message(id)).status, "queued");
  await assert.rejects(() => world.cancel.message(ACCOUNT, id), { code: "not_cancellable" });
  await world.supervisor.stop();
});

Deno.test("of a bulk all that has not left is cancelled, and the messages around it go on", async () => {
  const world = await connectedWorld(PAUSES);
  const bulk = await acceptBulk(world, 130);
  const single = await world.accept();
  world.supervisor.queueChanged("ses_1");
  await world.clock.advance(0);
  const cancelled = await world.cancel.bulk(ACCOUNT, "blk_1");
  assert.deepEqual(cancelled.map(({ id }) => id), bulk.slice(1).map(({ id }) => id));
  assert.equal((await world.message(bulk[0]!.id)).status, "sent");
  await world.clock.advance(200_000);
  assert.equal((await world.message(single.id)).status, "sent");
  assert.equal(world.network.departures.length, 2);
  const finished = await world.events("bulk.finished");
  assert.deepEqual(finished.map(({ data }) => data), [{ bulkId: "blk_1", total: 130, sent: 1, failed: 129 }]);
  assert.deepEqual(await world.cancel.bulk(ACCOUNT, "blk_1"), [], "nothing of it waits any more");
  await assert.rejects(() => world.cancel.bulk("acc_2", "blk_1"), { code: "not_found" });
  await world.supervisor.stop();
});

Deno.test("a message that is cancelled in the moment of its departure is either cancelled or sent", async () => {
  const ends = new Set<string>();
  // The cancel begins ever so little later, until the departure is the faster one.
  for (let later = 0; later < 200; later++) {
    const world = await connectedWorld();
    const { id } = await world.accept();
    for (let i = 0; i < later; i++) await Promise.resolve();
    const cancelled = await world.cancel.message(ACCOUNT, id).then(() => true, () => false);
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
