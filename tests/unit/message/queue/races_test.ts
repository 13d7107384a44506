/** Changes of a waiting message that meet the runner while it moves rows of the queue. */
import assert from "node:assert/strict";
import { removeAllStaged } from "../../../../src/message/bulk.ts";
import { completeChats } from "../../../../src/message/queue/chat_order.ts";
import { Lanes } from "../../../../src/message/queue/lanes.ts";
import { LineQueue } from "../../../../src/message/queue/queue.ts";
import { makeQueued, type Queued } from "../../../../src/message/queue_changes.ts";
import { messageKeys } from "../../../../src/message/rows.ts";
import { type Kv, StoreError } from "../../../../src/store/kv.ts";
import { MemoryDisk, MemoryKv } from "../../../support/memory_kv.ts";
import { testRuntime } from "../../../support/runtime.ts";
import {
  aBulk,
  aLine,
  aSend,
  keysUnder,
  type SendWorld,
  sendWorld,
  withSendWorld,
} from "../../../support/send_world.ts";
import { testBell } from "../../../support/bell.ts";

const LINE = aLine().id;

function queuedOf({ kv, runtime }: SendWorld): Queued {
  const nothing = () => Promise.reject(new Error("nothing is cancelled"));
  const recorder = { cancel: nothing, withdraw: nothing };
  return makeQueued({
    kv,
    clock: runtime.clock,
    bell: testBell(runtime),
    recorder,
    laneOf: () => Promise.resolve("cold"),
  });
}

const waiting = (kv: Kv) => Array.fromAsync(new LineQueue(kv, LINE).each(9), ({ id }) => id);

Deno.test("a scheduled message whose priority changes in the moment it is due goes on waiting", () =>
  withSendWorld(async (world) => {
    const { accept, kv, runtime: { clock } } = world;
    const sendAt = clock.now() + 60_000;
    const { messages: [accepted] } = await accept(aSend({ sendAt }));
    const { id } = accepted!;
    await clock.advance(60_000);
    let changes = 0;
    const racing: Kv = {
      ...kv,
      async commit(change, options) {
        if (changes++ === 0) await queuedOf(world).reschedule("acc_1", id, { priority: "high" });
        return await kv.commit(change, options);
      },
    };
    const dueAt = await new Lanes(racing, LINE).release(clock.now(), () => "cold");
    assert.deepEqual(await waiting(kv), [id]);
    assert(dueAt !== null && dueAt <= clock.now(), "the runner looks again at once");
    assert.equal(await new Lanes(racing, LINE).release(clock.now(), () => "cold"), null);
    const [row] = await Array.fromAsync(kv.list({ prefix: messageKeys.queueOfLine(LINE) }));
    assert.equal(row?.value.messageId, id);
  }));

Deno.test("a message whose time has come stays in the queue when its priority changes: none to its chat may pass", () =>
  withSendWorld(async (world) => {
    const { accept, kv, runtime: { clock } } = world;
    const sendAt = clock.now() + 60_000;
    const { messages: [accepted] } = await accept(aSend({ sendAt }));
    await clock.advance(60_000);
    await new Lanes(kv, LINE).release(clock.now(), () => "cold");
    for (const place of [{ priority: "low" }, { priority: "high", sendAt }] as const) {
      await queuedOf(world).reschedule("acc_1", accepted!.id, place);
      assert.equal((await keysUnder(kv, messageKeys.queueLane(LINE, place.priority, "cold"))).length, 1);
      assert.equal((await keysUnder(kv, messageKeys.queueOfChat(LINE, "34600000001"))).length, 1);
      assert.deepEqual(await keysUnder(kv, messageKeys.scheduleOfLine(LINE)), []);
    }
  }));

Deno.test("a message that is put off while its chat writes does not leave before its time", () =>
  withSendWorld(async (world) => {
    const { accept, kv, runtime: { clock } } = world;
    const { messages: [accepted] } = await accept(aSend());
    const { id } = accepted!;
    await completeChats(kv, { lineId: LINE, accountId: "acc_1" });
    const racing: Kv = {
      ...kv,
      async getMany(keys) {
        await queuedOf(world).reschedule("acc_1", id, { sendAt: clock.now() + 3_600_000 });
        return await kv.getMany(keys);
      },
    };
    await new Lanes(racing, LINE).moveChat("34600000001", "reply");
    assert.deepEqual(await Array.fromAsync(kv.list({ prefix: messageKeys.queueOfLine(LINE) })), []);
    assert.deepEqual(await waiting(kv), [id]);
  }));

Deno.test("a message that is put off while it is moved to another lane leaves no row at its old place", () =>
  withSendWorld(async (world) => {
    const { accept, kv, runtime: { clock } } = world;
    const { messages: [accepted] } = await accept(aSend());
    const { id } = accepted!;
    const sendAt = clock.now() + 3_600_000;
    const racing: Kv = {
      ...kv,
      async commit(change, options) {
        await queuedOf(world).reschedule("acc_1", id, { sendAt });
        return await kv.commit(change, options);
      },
    };
    const rows = await Array.fromAsync(kv.list({ prefix: messageKeys.queueOfLine(LINE) }));
    await new Lanes(racing, LINE).move(rows, "reply");
    assert.deepEqual(await waiting(kv), [id]);
    assert.deepEqual(await keysUnder(kv, messageKeys.queueOfLine(LINE)), []);
    assert.deepEqual(await keysUnder(kv, messageKeys.queueOfChat(LINE, "34600000001")), []);
    assert.equal((await keysUnder(kv, messageKeys.scheduleOfLine(LINE))).length, 1);
  }));

for (const by of ["rows", "chat"]) {
  Deno.test(`a bulk that is removed while it moves to another lane, by ${by}, leaves no row`, async () => {
    const disk = new MemoryDisk();
    const dying = new MemoryKv(disk);
    // Enough for all messages, but not for the commit that publishes them.
    dying.commitsLeft = 6;
    await assert.rejects(sendWorld(dying, testRuntime()).accept(aBulk(150)), StoreError);
    const kv = new MemoryKv(disk);
    assert.equal((await keysUnder(kv, messageKeys.queueOfLine(LINE))).length, 150);
    const racing: Kv = {
      ...kv,
      async commit(change) {
        await removeAllStaged(kv);
        return await kv.commit(change);
      },
    };
    const lanes = new Lanes(racing, LINE);
    if (by === "rows") {
      await lanes.move(
        await Array.fromAsync(kv.list({ prefix: messageKeys.queueOfLine(LINE) }, { limit: 5 })),
        "reply",
      );
    } else await lanes.moveChat("34600000001", "reply");
    assert.deepEqual(await keysUnder(kv, messageKeys.queueOfLine(LINE)), []);
    assert.deepEqual(await keysUnder(kv, messageKeys.queueOfChat(LINE, "").slice(0, 2)), []);
  });
}
