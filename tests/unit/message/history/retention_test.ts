/** How long messages are kept: what goes, what stays, and that pages and totals are right throughout. */
import assert from "node:assert/strict";
import { countEnd, finishBulks } from "../../../../src/message/bulk.ts";
import { moveStatus } from "../../../../src/message/history/status_index.ts";
import { removeHistory, sweepHistory } from "../../../../src/message/history/retention.ts";
import type { Message, MessageStatus } from "../../../../src/message/message.ts";
import { messageKeys } from "../../../../src/message/rows.ts";
import { Change, type Key } from "../../../../src/store/kv.ts";
import { aBulk, aSend, keysUnder, type SendWorld, withSendWorld } from "../../../support/send_world.ts";
import { testEvents } from "../../../support/bell.ts";

const DAY_MS = 24 * 3_600_000;
const ACCOUNT = "acc_1";

async function messages({ kv }: SendWorld): Promise<Message[]> {
  const rows = await Array.fromAsync(kv.list({ prefix: messageKeys.messages() }));
  return rows.map(({ value }) => value).sort((a, b) => a.historyNumber - b.historyNumber);
}

/** As the recorder leaves messages that have ended, their receipts with them. */
async function end(world: SendWorld, some: readonly Message[], statusOf: (message: Message) => MessageStatus) {
  await endUnreported(world, some, statusOf);
  await reportBulks(world);
}

async function reportBulks({ kv, runtime }: SendWorld): Promise<number> {
  const events = testEvents(kv, runtime);
  return await finishBulks({ kv, events, sessionName: () => Promise.resolve("line") });
}

/** As a crash leaves them, right before the end of their bulk is reported. */
async function endUnreported(
  { kv }: SendWorld,
  some: readonly Message[],
  statusOf: (message: Message) => MessageStatus,
) {
  for (const message of some) {
    const ended = { ...message, status: statusOf(message), deliveredAt: 1 };
    const change = new Change().set(messageKeys.message(message.id), ended);
    countEnd(change, ended);
    moveStatus(change, message, { from: "queued", to: ended.status });
    change.set(messageKeys.messageOfNetworkId(message.sessionId, message.networkId), message.id);
    change.set(messageKeys.receipt(message.id, "delivered", ""), 1);
    await kv.commit(change);
  }
}

const swept = (world: SendWorld, keepMs: number) => world.runtime.clock.during(sweepHistory(world, { keepMs }));

const total = async (world: SendWorld, query: Partial<Parameters<SendWorld["history"]["page"]>[1]> = {}) =>
  (await world.history.page(ACCOUNT, { ...query, page: 1, limit: 100 })).total;

Deno.test("messages that are old go with all that hangs on them, and pages, totals and filters are of those that stay", () =>
  withSendWorld(async (world) => {
    const { kv, runtime } = world;
    const old = await world.accept(aBulk(2_400, { bulk: true }));
    await end(world, await messages(world), ({ historyNumber }) => historyNumber % 3 === 0 ? "failed" : "sent");
    await runtime.clock.advance(10 * DAY_MS);
    await world.accept(aBulk(500));
    const young = (await messages(world)).slice(2_400);
    await end(world, young.slice(0, 300), ({ historyNumber }) => historyNumber % 3 === 0 ? "failed" : "sent");
    assert.equal(await total(world, { recipient: "34600000007" }), 2);

    assert.equal(await swept(world, 5 * DAY_MS), 2_400);
    assert.deepEqual((await messages(world)).map(({ id }) => id), young.map(({ id }) => id));
    assert.equal(await total(world), 500);
    assert.deepEqual(
      await Promise.all((["queued", "sent", "failed"] as const).map((status) => total(world, { status }))),
      [200, 200, 100],
    );
    assert.equal(await total(world, { recipient: "34600000007" }), 1);
    assert.equal(await total(world, { bulkId: old.bulkId }), 0);
    const days = young.map(({ createdAt }) => new Date(createdAt).toISOString().slice(0, 10));
    assert.equal(await total(world, { from: "2020-01-01", to: days[0]! }), 500);
    assert.equal(await total(world, { to: "2026-01-16" }), 0);
    const oldest = await world.history.page(ACCOUNT, { status: "sent", page: 2, limit: 100 });
    assert.equal(oldest.messages.at(-1)!.id, young[0]!.id);
    await assert.rejects(world.history.get(ACCOUNT, old.messages[0]!.id), { code: "not_found" });

    const left = async (...prefix: Key) => (await keysUnder(kv, prefix)).length;
    assert.equal(await left("message_of_network_id"), 300);
    assert.equal(await left("receipt"), 300);
    assert.equal(await left("bulk"), 1);
    assert.equal(await left("bulk_of_account"), 1);
    assert(await left("history_block") <= 18);
    assert.equal(await left("history_day"), 1);
    assert(await left("status_counts", ACCOUNT, 0) < 64, "words that no answer asks are gone");
    // What is accepted and ends from then on is counted as ever.
    await world.accept(aSend());
    assert.equal(await total(world), 501);
    assert.equal(await total(world, { recipient: "34600000001" }), 2);
  }));

Deno.test("what still waits keeps its place, and all that is younger with it; the sweep goes on when it has ended", () =>
  withSendWorld(async (world) => {
    await world.accept(aBulk(100));
    const [waiting, ...others] = (await messages(world)).slice(50);
    await end(world, (await messages(world)).slice(0, 50), () => "sent");
    await end(world, others, () => "sent");
    await world.runtime.clock.advance(10 * DAY_MS);
    assert.equal(await swept(world, DAY_MS), 50);
    assert.equal(await total(world), 50);
    assert.deepEqual((await messages(world))[0]!.id, waiting!.id);
    assert.equal(await total(world, { status: "queued" }), 1);
    await end(world, [waiting!], () => "failed");
    assert.equal(await swept(world, DAY_MS), 50);
    assert.equal(await total(world), 0);
    assert.deepEqual(await messages(world), []);
  }));

Deno.test("a bulk stays until its end is reported, and then leaves nothing", () =>
  withSendWorld(async (world) => {
    await world.accept(aSend());
    const { bulkId } = await world.accept(aBulk(100));
    await world.accept(aSend());
    await endUnreported(world, await messages(world), () => "sent");
    await world.runtime.clock.advance(10 * DAY_MS);
    assert.equal(await swept(world, DAY_MS), 100);
    assert.equal(await reportBulks(world), 1);
    const [finished] = await testEvents(world.kv, world.runtime).following(ACCOUNT, null);
    assert.deepEqual(finished?.data, { bulkId, total: 100, sent: 100, failed: 0 });
    assert.equal(await swept(world, DAY_MS), 2);
    for (const family of ["bulk", "bulk_of_account", "bulk_count", "open_bulk"]) {
      assert.deepEqual(await keysUnder(world.kv, [family]), [], family);
    }
  }));

Deno.test("wherever it is cut off, pages are whole and the next run removes the rest", () =>
  withSendWorld(async (world) => {
    const { kv, runtime } = world;
    await world.accept(aBulk(1_000));
    await end(world, await messages(world), ({ historyNumber }) => historyNumber % 2 ? "failed" : "sent");
    await runtime.clock.advance(10 * DAY_MS);
    const before = runtime.clock.now();
    for (let run = 1; run <= 5; run++) {
      const abort = new AbortController();
      let done = false;
      const removing = removeHistory(world, ACCOUNT, { before, most: Infinity, signal: abort.signal }).finally(() =>
        done = true
      );
      for (let i = 0; i < run && !done; i++) await runtime.clock.advance(1);
      abort.abort();
      while (!done) await runtime.clock.advance(1);
      await removing;
      const left = await messages(world);
      const failed = await total(world, { status: "failed" });
      assert.deepEqual([await total(world), failed], [left.length, left.filter((m) => m.status === "failed").length]);
      const { messages: page } = await world.history.page(ACCOUNT, { page: 1, limit: 100 });
      assert.equal(page.length, Math.min(100, left.length));
    }
    while (await swept(world, 0) > 0);
    assert.equal(await total(world), 0);
    assert.equal((await keysUnder(kv, ["receipt"])).length, 0);
  }));

Deno.test("beside other commits a few messages go with each of them, alone a whole block", () =>
  withSendWorld(async (world) => {
    const { runtime } = world;
    await world.accept(aBulk(300));
    await end(world, await messages(world), () => "sent");
    await runtime.clock.advance(10 * DAY_MS);
    const removals: number[] = [];
    const kv: SendWorld["kv"] = {
      ...world.kv,
      commit(change, options) {
        if (options?.lingerUntil) removals.push(change.mutations.filter(({ key }) => key[0] === "message").length);
        return world.kv.commit(change, options);
      },
    };
    const abort = new AbortController();
    const sweep = sweepHistory({ kv, runtime }, { keepMs: 5 * DAY_MS, signal: abort.signal });
    while (removals.length < 4) await world.accept(aSend());
    assert.deepEqual(removals.slice(0, 3), [3, 3, 3]);
    abort.abort();
    await sweep;
    const before = removals.length;
    assert(await swept({ ...world, kv }, 5 * DAY_MS) > 200);
    assert(removals.slice(before + 2, -1).every((count) => count === 30), String(removals));
  }));

Deno.test("a poll in a big group goes with more receipts and votes than one commit holds", () =>
  withSendWorld(async (world) => {
    const { kv, runtime } = world;
    const content = { kind: "poll", question: "?", options: ["a", "b"], multiple: false } as const;
    await world.accept(aSend({ items: [{ to: "1-2@g.us", content: { ...content, options: [...content.options] } }] }));
    const [poll] = await messages(world);
    await end(world, [poll!], () => "sent");
    for (let voter = 0; voter < 1_000; voter += 250) {
      const change = new Change();
      for (let i = voter; i < voter + 250; i++) {
        change.set(messageKeys.receipt(poll!.id, "delivered", `${i}@lid`), 1);
        change.set(messageKeys.receipt(poll!.id, "read", `${i}@lid`), 1);
        change.set(messageKeys.vote(poll!.id, `${i}@lid`), ["a"]);
      }
      await kv.commit(change);
    }
    await runtime.clock.advance(10 * DAY_MS);
    assert.equal(await swept(world, 5 * DAY_MS), 1);
    for (const family of ["receipt", "vote", "message"]) assert.deepEqual(await keysUnder(kv, [family]), []);
  }));
