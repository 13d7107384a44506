import assert from "node:assert/strict";
import { makeSweepStaged, removeAllStaged } from "../../../src/message/bulk.ts";
import { LineQueue } from "../../../src/message/queue/queue.ts";
import { type Ledger, messageKeys } from "../../../src/message/rows.ts";
import { type Kv, StoreError } from "../../../src/store/kv.ts";
import { MemoryDisk, MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";
import { aBulk, aCaller, aSend, keysUnder, sendWorld, withSendWorld } from "../../support/send_world.ts";

/** Three commits' worth of messages, so that a crash has places to fall into. */
const BULK = 450;
const ALL = { page: 1, limit: 20 };

async function waiting(kv: MemoryKv): Promise<number> {
  return (await Array.fromAsync(new LineQueue(kv, "ses_1").each(Infinity))).length;
}

Deno.test("a bulk is there as a whole or not at all, wherever the process is killed while it is accepted", async () => {
  let accepted = false;
  let kills = 0;
  for (; !accepted; kills++) {
    const disk = new MemoryDisk();
    const dying = new MemoryKv(disk);
    const before = sendWorld(dying, testRuntime());
    await before.accept(aSend());
    dying.commitsLeft = kills;
    const [outcome] = await Promise.allSettled([before.accept(aBulk(BULK, { caller: aCaller({ daily: 1000 }) }))]);
    accepted = outcome.status === "fulfilled";
    if (outcome.status === "rejected") assert(outcome.reason instanceof StoreError);

    const kv = new MemoryKv(disk);
    assert.equal(await waiting(kv), accepted ? BULK + 1 : 1, "also before anything was cleaned up");
    await removeAllStaged(kv);
    const after = sendWorld(kv, testRuntime(kills + 2));
    const count = accepted ? BULK + 1 : 1;
    assert.equal((await after.history.page("acc_1", ALL)).total, count);
    for (const family of [messageKeys.messages(), messageKeys.queueOfLine("ses_1")]) {
      assert.equal((await keysUnder(kv, family)).length, count, String(family));
    }
    // The one accepted before the bulk has no row by chat yet.
    assert.equal((await keysUnder(kv, messageKeys.queueOfChat("ses_1", "").slice(0, 2))).length, count - 1);
    assert.equal(
      (await Array.fromAsync(kv.list({ prefix: messageKeys.expiries() }))).flatMap((row) => row.value).length,
      count,
    );
    assert.equal((await keysUnder(kv, messageKeys.stagedBulks())).length, 0);
    assert.equal((await kv.get<Ledger>(messageKeys.ledger("acc_1"))).value?.usage.daily, count);

    await after.accept(aSend());
    assert.equal(await waiting(kv), count + 1);
  }
  assert(kills > 5, `only ${kills} places to be killed at`);
});

Deno.test("what clears up after a killed bulk may be killed itself, at any point", async () => {
  const disk = new MemoryDisk();
  const dying = new MemoryKv(disk);
  dying.commitsLeft = 4;
  await assert.rejects(sendWorld(dying, testRuntime()).accept(aBulk(BULK)), StoreError);
  let kills = 0;
  for (let done = false; !done; kills++) {
    const kv = new MemoryKv(disk);
    kv.commitsLeft = kills;
    done = await removeAllStaged(kv).then(() => true, () => false);
  }
  assert(kills > 2);
  assert.deepEqual([...disk.rows.values()].map((row) => row.key), [messageKeys.ledger("acc_1")]);
});

Deno.test("a scheduled bulk stays whole when what is left of an earlier attempt in another process is removed", async () => {
  const disk = new MemoryDisk();
  const sendAt = testRuntime().clock.now() + 60_000;
  const dying = new MemoryKv(disk);
  dying.commitsLeft = 4;
  await assert.rejects(sendWorld(dying, testRuntime()).accept(aBulk(BULK, { sendAt })), StoreError);
  const kv = new MemoryKv(disk);
  await sendWorld(kv, testRuntime(2)).accept(aBulk(BULK, { sendAt }));
  await removeAllStaged(kv);
  assert.equal(await waiting(kv), BULK);
  assert.equal((await keysUnder(kv, messageKeys.scheduleOfLine("ses_1"))).length, BULK);
});

Deno.test("a process that slept while it staged a bulk adds nothing to it once the bulk was removed", async () => {
  const kv = new MemoryKv();
  const sweep = makeSweepStaged(kv);
  let pieces = 0;
  let removed = 0;
  const sleepy: Kv = {
    ...kv,
    async commit(change, options) {
      // Another process finds the bulk unchanged in two runs of its sweep, and takes it for abandoned.
      if (options?.background && ++pieces === 3) removed = await sweep() + await sweep();
      return await kv.commit(change);
    },
  };
  await assert.rejects(sendWorld(sleepy, testRuntime()).accept(aBulk(BULK)), StoreError);
  assert.equal(removed, 1);
  assert.deepEqual([...kv.disk.rows.values()].map((row) => row.key), [messageKeys.ledger("acc_1")]);
});

Deno.test("a bulk whose publishing failed leaves nothing in the way of the next send of the same process", async () => {
  const kv = new MemoryKv();
  const { accept, history } = sendWorld(kv, testRuntime());
  let commits = 0;
  kv.committed = () => {
    // The reservation and three pieces are written, the commit that publishes it fails.
    if (++commits === 4) kv.trouble = new StoreError("locked", "another process holds the file");
  };
  await assert.rejects(accept(aBulk(BULK)), StoreError);
  assert.equal(commits, 4);
  kv.trouble = null;
  const [single, bulk] = await Promise.all([accept(aSend()), accept(aBulk(BULK))]);
  assert.equal(await waiting(kv), BULK + 1);
  assert.equal((await history.get("acc_1", single.messages[0]!.id)).historyNumber, 1);
  assert.equal((await history.get("acc_1", bulk.messages[BULK - 1]!.id)).historyNumber, BULK + 1);
});

Deno.test("a large bulk and sends of another process at the same time all get places of their own", () =>
  withSendWorld(async (world) => {
    const { clock } = world.runtime;
    const other = sendWorld(world.kv, testRuntime(2, clock));
    const bulk = world.accept(aBulk(BULK));
    const sends = Array.from({ length: 10 }, () => other.accept(aSend()));
    const accepted = await clock.during(Promise.all([bulk, ...sends]));
    assert.equal((await keysUnder(world.kv, messageKeys.queueOfLine("ses_1"))).length, BULK + 10);
    assert.equal((await keysUnder(world.kv, messageKeys.messages())).length, BULK + 10);
    const ids = new Set(accepted.flatMap(({ messages }) => messages.map(({ id }) => id)));
    assert.equal(ids.size, BULK + 10);
    const numbers = [];
    for (const id of ids) numbers.push((await world.history.get("acc_1", id)).historyNumber);
    assert.deepEqual(numbers.sort((a, b) => a - b), Array.from({ length: BULK + 10 }, (_, i) => i + 1));
  }));

Deno.test("of a large bulk every item has its status, its place and its share of the quota right after the answer", () =>
  withSendWorld(async ({ accept, history, kv }) => {
    const caller = aCaller({ monthly: 3000 });
    const { messages, remaining, bulkId } = await accept(aBulk(2500, { caller }));
    assert.equal(remaining.monthly, 500);
    assert.equal((await kv.get(messageKeys.bulk(bulkId!))).value?.total, 2500);
    const page = await history.page("acc_1", { ...ALL, page: 125 });
    assert.equal(page.total, 2500);
    assert.deepEqual(page.messages.map(({ id }) => id), messages.slice(0, 20).map(({ id }) => id).reverse());
    const last = await history.get("acc_1", messages.at(-1)!.id);
    assert.deepEqual([last.status, last.historyNumber, last.to, last.bulkId], ["queued", 2500, "34600002499", bulkId]);
    await assert.rejects(accept(aBulk(501, { caller })), { code: "quota_exceeded" });
  }));
