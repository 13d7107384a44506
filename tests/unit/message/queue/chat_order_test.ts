/** That every chat keeps its order, though accepting leaves out the rows by chat. */
import assert from "node:assert/strict";
import { EMPTY_LEDGER } from "../../../../src/message/history/ledger.ts";
import { completeChats } from "../../../../src/message/queue/chat_order.ts";
import { QueueHead } from "../../../../src/message/queue/head.ts";
import { Lanes } from "../../../../src/message/queue/lanes.ts";
import { positionAt } from "../../../../src/message/queue/place.ts";
import { LineQueue } from "../../../../src/message/queue/queue.ts";
import type { Message, Priority } from "../../../../src/message/message.ts";
import { messageKeys, type QueueRow } from "../../../../src/message/rows.ts";
import { Change, type Kv } from "../../../../src/store/kv.ts";
import { MemoryKv } from "../../../support/memory_kv.ts";
import {
  aBulk,
  aLine,
  aSend,
  endMessage,
  keysUnder,
  type SendWorld,
  sendWorld,
  withSendWorld,
} from "../../../support/send_world.ts";

const LINE = { lineId: aLine().id, accountId: "acc_1" };
const CHAT = "34600000001";
/** More than a commit of `completeChats` takes. */
const MANY = 250;

async function send({ accept }: SendWorld, to: string, priority: Priority = "normal"): Promise<string> {
  const { messages: [accepted] } = await accept(
    aSend({ priority, items: [{ to, content: { kind: "text", text: "hello" } }] }),
  );
  return accepted!.id;
}

/** One message each to other chats, not urgent ones. */
async function sendToOthers(world: SendWorld, count: number): Promise<void> {
  const priorities = ["normal", "low"] as const;
  await Promise.all(
    Array.from({ length: count }, (_, i) => send(world, String(34_611_000_000 + i), priorities[i % 2])),
  );
}

async function next(kv: Kv): Promise<Message> {
  const choice = { laneOf: () => "cold" as const, oldestBefore: null, behind: null };
  return (await new QueueHead(kv, LINE).next(choice))!.value;
}

/** Ends all that waits, in the order of departure; returns the ids of what went to the chat. */
async function sendAll({ kv }: SendWorld): Promise<string[]> {
  const left: string[] = [];
  const choice = { laneOf: () => "cold" as const, oldestBefore: null, behind: null };
  const head = new QueueHead(kv, LINE);
  for (let row = await head.next(choice); row !== null; row = await head.next(choice)) {
    if (row.value.to === CHAT) left.push(row.value.id);
    await endMessage(kv, row.value);
  }
  return left;
}

const rowsByChat = (kv: Kv) => keysUnder(kv, messageKeys.queueOfChat(LINE.lineId, CHAT).slice(0, 2));

Deno.test("an urgent message passes all but the earlier ones to its chat, however many were accepted before it", () =>
  withSendWorld(async (world) => {
    const { kv } = world;
    await sendToOthers(world, 10);
    const first = await send(world, CHAT, "low");
    await sendToOthers(world, MANY);
    const second = await send(world, CHAT);
    await sendToOthers(world, MANY);
    const urgent = await send(world, CHAT, "high");
    await sendToOthers(world, MANY);
    const last = await send(world, CHAT, "high");
    assert.deepEqual(await sendAll(world), [first, second, urgent, last]);
    assert.deepEqual(await rowsByChat(kv), [], "what has left has no rows any more");
  }));

Deno.test("a queue in one lane is sent without rows by chat", () =>
  withSendWorld(async (world) => {
    const { kv } = world;
    const ids = [];
    for (let i = 0; i < 5; i++) ids.push(await send(world, CHAT));
    const commits: number[] = [];
    const counting: Kv = { ...kv, commit: (change, options) => (commits.push(1), kv.commit(change, options)) };
    assert.equal((await next(counting)).id, ids[0]);
    assert.deepEqual([commits, await rowsByChat(kv)], [[], []]);
  }));

Deno.test("a chat keeps its order when a clock is set back behind the time of what was scheduled", () =>
  withSendWorld(async (world) => {
    const { accept, kv, runtime: { clock } } = world;
    const now = clock.now();
    await accept(aSend({ sendAt: now + 60_000, items: [{ to: "34611000000", content: { kind: "text", text: "a" } }] }));
    // The machine that releases it is ahead of the one that accepts.
    await new Lanes(kv, LINE.lineId).release(now + 60_000, () => "cold");
    await send(world, "34611000001", "high");
    await completeChats(kv, LINE);
    const first = await send(world, CHAT, "low");
    const urgent = await send(world, CHAT, "high");
    assert.deepEqual(await sendAll(world), [first, urgent]);
  }));

Deno.test("an accepted message has its row by chat although very many are due in the microsecond of its position", async () => {
  const kv = new MemoryKv();
  const position = positionAt(1_000);
  // As many as are read at once, and the accepted one right behind them.
  const rows = Array.from({ length: 10_001 }, (_, i) => ({ messageId: `msg_${i}`, chat: CHAT, bulkId: null }));
  const place = (i: number) => ({ position, historyNumber: i + 1 });
  for (const [i, row] of rows.entries()) {
    await kv.commit(new Change().set(messageKeys.queue(LINE.lineId, "normal", "cold", place(i)), row));
  }
  await kv.commit(
    new Change().set(messageKeys.ledger(LINE.accountId), { ...EMPTY_LEDGER, lastPosition: position + 5 }),
  );
  await completeChats(kv, LINE);
  const { value } = await kv.get<QueueRow>(messageKeys.chatQueue(LINE.lineId, CHAT, place(10_000)));
  assert.equal(value?.messageId, "msg_10000");
});

Deno.test("a bulk keeps its chats' order, though rows by chat are written while it is staged", () =>
  withSendWorld(async (world) => {
    const { kv, runtime } = world;
    await send(world, "34611000000", "high");
    let staged = 0;
    const staging: Kv = {
      ...kv,
      async commit(change, options) {
        if (options?.background && staged++ === 0) await completeChats(kv, LINE);
        return await kv.commit(change, options);
      },
    };
    const { messages } = await sendWorld(staging, runtime).accept(aBulk(400, { priority: "low" }));
    assert.ok(staged > 1);
    const ofBulk = messages[1]!.id;
    assert.equal((await world.history.get("acc_1", ofBulk)).to, CHAT);
    const urgent = await send(world, CHAT, "high");
    assert.deepEqual(await sendAll(world), [ofBulk, urgent]);
  }));

Deno.test("a chat keeps its order when an earlier message of it was moved to another lane", () =>
  withSendWorld(async (world) => {
    const { kv } = world;
    const first = await send(world, CHAT);
    await send(world, "34611000000");
    const [row] = await Array.fromAsync(kv.list({ prefix: messageKeys.queueOfLine(LINE.lineId) }));
    await new Lanes(kv, LINE.lineId).move([row!], "reply");
    const urgent = await send(world, CHAT, "high");
    assert.deepEqual(await sendAll(world), [first, urgent]);
  }));

Deno.test("a message that ends while its row by chat is written leaves none behind", () =>
  withSendWorld(async (world) => {
    const { kv, history } = world;
    const ended = await history.get("acc_1", await send(world, CHAT));
    const stays = await history.get("acc_1", await send(world, CHAT));
    let commits = 0;
    const racing: Kv = {
      ...kv,
      async commit(change, options) {
        if (commits++ === 0) await endMessage(kv, ended);
        return await kv.commit(change, options);
      },
    };
    await completeChats(racing, LINE);
    assert.equal(commits, 2);
    assert.deepEqual(await rowsByChat(kv), [messageKeys.chatQueue(LINE.lineId, CHAT, stays)]);
  }));

Deno.test("all messages to a chat are found, with a row by chat or without, and while they get one", () =>
  withSendWorld(async (world) => {
    const { accept, kv, runtime: { clock } } = world;
    const ids = [await send(world, CHAT), await send(world, CHAT, "high")];
    await completeChats(kv, LINE);
    await sendToOthers(world, 2);
    ids.push(await send(world, CHAT, "low"), await send(world, CHAT));
    ids.push((await accept(aSend({ sendAt: clock.now() + 1000 }))).messages[0]!.id);
    const found = async (queue: LineQueue) => (await queue.idsFor(new Set([CHAT]))).sort();
    assert.deepEqual(await found(new LineQueue(kv, LINE.lineId)), ids.toSorted());
    // The rows are completed between any two reads.
    const racing: Kv = {
      ...kv,
      async *list(range, options) {
        for await (const row of kv.list(range, options)) {
          await completeChats(kv, LINE);
          yield row;
        }
        await completeChats(kv, LINE);
      },
    };
    assert.deepEqual(await found(new LineQueue(racing, LINE.lineId)), ids.toSorted());
    assert.equal((await rowsByChat(kv)).length, 6);
  }));
