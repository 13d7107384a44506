import assert from "node:assert/strict";
import { moveStatus } from "../../../../src/message/history/status_index.ts";
import type { OutgoingContent } from "../../../../src/message/content.ts";
import { type Message, MESSAGE_STATUSES, NEXT_STATUS } from "../../../../src/message/message.ts";
import { messageKeys } from "../../../../src/message/rows.ts";
import { Change } from "../../../../src/store/kv.ts";
import { ManualClock, seededRandom, testRuntime } from "../../../support/runtime.ts";
import { aBulk, aCaller, aLine, aSend, type SendWorld, sendWorld, withSendWorld } from "../../../support/send_world.ts";

const ALL = { page: 1, limit: 20 };
const DAY_MS = 24 * 60 * 60 * 1000;

/** Moves a message as the queue does: its row and the index in one commit. */
async function move({ kv }: SendWorld, message: Message, status: Message["status"]): Promise<Message> {
  const moved = { ...message, status };
  const change = new Change().set(messageKeys.message(message.id), moved);
  moveStatus(change, message, { from: message.status, to: status });
  await kv.commit(change);
  return moved;
}

function aContent(chance: number): OutgoingContent {
  if (chance < 3) return { kind: "text", text: "hello" };
  return { kind: "location", latitude: 0, longitude: 0, name: null, address: null };
}

function utcDay(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

for (const seed of [1, 2, 3]) {
  Deno.test(`any page, by whatever filters, is what a plain list would give (seed ${seed})`, () =>
    withSendWorld(async (world) => {
      const { accept, history, runtime } = world;
      const random = seededRandom(seed);
      /** What the history should say, oldest first. */
      let model: Message[] = [];
      const bulkIds = ["blk_unknown"];
      const orNull = <T>(value: T) => random.between(0, 2) === 0 ? value : null;
      for (let step = 0; step < 60; step++) {
        const chance = random.between(1, 10);
        if (chance <= 4) {
          const line = aLine(`ses_${random.between(1, 3)}`);
          const send = chance === 1 ? aBulk(random.between(1, 90), { line }) : aSend({
            line,
            items: [{ to: `3460000000${random.between(0, 9)}@s.whatsapp.net`, content: aContent(chance) }],
          });
          const { bulkId, messages } = await accept(send);
          if (bulkId !== null) bulkIds.push(bulkId);
          for (const { id } of messages) model.push(await history.get("acc_1", id));
        } else if (chance === 5) {
          await runtime.clock.advance(random.between(1, 3 * DAY_MS));
        } else {
          for (let i = 0; i < 10 && model.length > 0; i++) {
            const place = random.between(0, model.length - 1);
            const next = NEXT_STATUS[model[place]!.status];
            if (next.length === 0) continue;
            const moved = await move(world, model[place]!, next[random.between(0, next.length - 1)]!);
            model = model.with(place, moved);
          }
        }
        const query = {
          page: random.between(1, 5),
          limit: random.between(1, 30),
          status: [null, ...MESSAGE_STATUSES][random.between(0, 4)]!,
          from: random.between(0, 1) ? null : utcDay(runtime.clock.now() - random.between(0, 9) * DAY_MS),
          to: random.between(0, 1) ? null : utcDay(runtime.clock.now() - random.between(0, 9) * DAY_MS),
          sessionId: orNull(`ses_${random.between(1, 4)}`),
          recipient: orNull(`3460000000${random.between(0, 9)}`),
          type: orNull((["text", "location", "poll"] as const)[random.between(0, 2)]!),
          bulkId: orNull(bulkIds[random.between(0, bulkIds.length - 1)]!),
          before: orNull(model[random.between(0, model.length - 1)]?.id ?? null),
        };
        const end = query.before === null ? model.length : model.findIndex(({ id }) => id === query.before);
        const expected = model.slice(0, end).filter(({ status, createdAt, sessionId, to, content, bulkId }) =>
          (query.status === null || status === query.status) &&
          (query.sessionId === null || sessionId === query.sessionId) &&
          (query.recipient === null || to.replace("@s.whatsapp.net", "") === query.recipient) &&
          (query.type === null || content.kind === query.type) &&
          (query.bulkId === null || bulkId === query.bulkId) &&
          (query.from === null || utcDay(createdAt) >= query.from) &&
          (query.to === null || utcDay(createdAt) <= query.to)
        ).reverse();
        const offset = (query.page - 1) * query.limit;
        assert.deepEqual(await history.page("acc_1", query), {
          messages: expected.slice(offset, offset + query.limit),
          total: expected.length,
        }, `step ${step}: ${JSON.stringify(query)}`);
      }
      assert(model.length > 100, "the test saw few messages");
    }, seed));
}

Deno.test("an account without messages has an empty history", () =>
  withSendWorld(async ({ history }) => {
    for (const status of [null, ...MESSAGE_STATUSES]) {
      assert.deepEqual(await history.page("acc_1", { ...ALL, status }), { messages: [], total: 0 });
    }
  }));

Deno.test("a page beyond the end is empty and still has the total", () =>
  withSendWorld(async ({ accept, history }) => {
    await accept(aBulk(45));
    assert.equal((await history.page("acc_1", { ...ALL, page: 3 })).messages.length, 5);
    for (const page of [4, 1e15]) {
      assert.deepEqual(await history.page("acc_1", { ...ALL, page }), { messages: [], total: 45 });
    }
  }));

Deno.test("a page of long messages ends early, and says where it goes on", () =>
  withSendWorld(async ({ accept, history }) => {
    const content = { kind: "text" as const, text: "x".repeat(65_536) };
    const sent: string[] = [];
    for (let i = 0; i < 10; i++) {
      const items = Array.from({ length: 14 }, () => ({ to: "34600000001", content }));
      sent.unshift(...(await accept(aSend({ items, bulk: true }))).messages.map(({ id }) => id).reverse());
    }
    const seen: string[] = [];
    for (let before: string | null = null; seen.length < 100;) {
      const { messages, total, next } = await history.page("acc_1", { ...ALL, limit: 100, before });
      assert.equal(total, 140 - seen.length);
      assert.ok(messages.length > 0 && messages.length < 100);
      seen.push(...messages.map(({ id }) => id));
      assert.equal(next, seen.at(-1));
      before = next!;
    }
    assert.deepEqual(seen, sent.slice(0, seen.length));
    assert.equal((await history.page("acc_1", { ...ALL, limit: 20 })).next, undefined);
    await assert.rejects(history.page("acc_2", { ...ALL, before: sent[0]! }), { code: "not_found" });
  }));

Deno.test("a day holds its first and its last millisecond", () =>
  withSendWorld(async ({ accept, history, runtime }) => {
    const midnight = Date.UTC(2026, 0, 16);
    await runtime.clock.advance(midnight - 1 - runtime.clock.now());
    await accept(aSend());
    await runtime.clock.advance(1);
    await accept(aSend());
    await accept(aSend());
    const total = async (from: string | null, to: string | null) =>
      (await history.page("acc_1", { ...ALL, from, to })).total;
    assert.equal(await total("2026-01-15", "2026-01-15"), 1);
    assert.equal(await total("2026-01-16", "2026-01-16"), 2);
    assert.equal(await total("2026-01-15", "2026-01-16"), 3);
    assert.equal(await total(null, "9999-12-31"), 3);
    assert.equal(await total("2026-01-17", null), 0);
    assert.equal(await total(null, "2026-01-14"), 0);
    assert.equal(await total("2026-01-16", "2026-01-15"), 0);
  }));

Deno.test("another account's messages are neither in the history nor to be had by id", () =>
  withSendWorld(async ({ accept, history }) => {
    const { messages } = await accept(aSend());
    await assert.rejects(history.get("acc_2", messages[0]!.id), { code: "not_found" });
    await assert.rejects(history.get("acc_1", "msg_none"), { code: "not_found" });
    assert.equal((await history.page("acc_2", ALL)).total, 0);
  }));

Deno.test("pages are right where the messages of several accounts lie between each other", () =>
  withSendWorld(async ({ accept, history }) => {
    const own: string[] = [];
    for (let i = 0; i < 60; i++) {
      own.unshift((await accept(aSend())).messages[0]!.id);
      const others = Array.from({ length: i % 5 }, (_, j) => aSend({ caller: aCaller({}, `acc_${j + 2}`) }));
      await Promise.all(others.map(accept));
    }
    for (const page of [1, 2, 3]) {
      const { messages } = await history.page("acc_1", { ...ALL, page });
      assert.deepEqual(messages.map(({ id }) => id), own.slice((page - 1) * 20, page * 20));
    }
  }));

Deno.test("what was accepted by a clock years ahead does not spoil the days once the clock is right", () =>
  withSendWorld(async (world) => {
    const start = world.runtime.clock.now();
    const acceptAt = async (at: number, count: number) => {
      const { accept } = sendWorld(world.kv, testRuntime(at % 1000, new ManualClock(at)));
      for (let i = 0; i < count; i++) await accept(aSend());
    };
    await acceptAt(start, 3);
    await acceptAt(start + 4_000 * DAY_MS, 1);
    await acceptAt(start + 1, 2);
    await acceptAt(start + DAY_MS, 1);
    // Set right on a day on which nothing was accepted before.
    await acceptAt(start + 4_000 * DAY_MS, 1);
    await acceptAt(start + 3 * DAY_MS, 4);
    await acceptAt(start + 4 * DAY_MS, 8);
    const dayAfter = (days: number) => utcDay(start + days * DAY_MS);
    const [today, tomorrow, third] = [utcDay(start), dayAfter(1), dayAfter(3)];
    const count = async (days: { from?: string; to?: string }) =>
      (await world.history.page("acc_1", { ...ALL, ...days })).total;
    assert.deepEqual(
      [await count({ from: today, to: today }), await count({ to: tomorrow }), await count({ from: tomorrow })],
      [6, 8, 14],
    );
    assert.deepEqual(
      [await count({ from: third, to: third }), await count({ from: dayAfter(4) }), await count({ to: third })],
      [4, 8, 12],
    );
  }));

Deno.test("the history keeps the order of acceptance when the clock was set back between two runs", () =>
  withSendWorld(async (world) => {
    const ids: string[] = [];
    for (const backMs of [0, DAY_MS, 2 * DAY_MS]) {
      const runtime = testRuntime(backMs + 2, new ManualClock(world.runtime.clock.now() - backMs));
      const { accept } = sendWorld(world.kv, runtime);
      for (let i = 0; i < 10; i++) ids.unshift((await accept(aSend())).messages[0]!.id);
    }
    const { messages, total } = await world.history.page("acc_1", { ...ALL, limit: 30 });
    assert.deepEqual(messages.map(({ id }) => id), ids);
    assert.equal(total, 30);
  }));
