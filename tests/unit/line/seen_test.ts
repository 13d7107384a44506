import assert from "node:assert/strict";
import { chatsOn } from "../../support/chats.ts";
import { makeSweepSeen, makeUnread, MAX_MESSAGE_AGE_MS } from "../../../src/line/seen.ts";
import { newLine } from "../../../src/line/line.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { Change, type Kv } from "../../../src/store/kv.ts";
import { MemoryKv } from "../../support/memory_kv.ts";

const NOW = Date.parse("2026-08-01T00:00:00Z");
const OLD = NOW - MAX_MESSAGE_AGE_MS - 2 * 86_400_000;

/** Every third row is old. */
async function filled(rows: number): Promise<{ kv: Kv; left: () => Promise<number>; read: () => number }> {
  const memory = new MemoryKv();
  for (let i = 0; i < rows; i++) {
    await memory.commit(new Change().set(lineKeys.seen("ses_1", `${i % 7}@lid`, `IN${i}`), i % 3 === 0 ? OLD : NOW));
  }
  let read = 0;
  const kv: Kv = {
    ...memory,
    close: () => {},
    async *list(range, options) {
      for await (const row of memory.list(range, options)) {
        read++;
        yield row as never;
      }
    },
  };
  return {
    kv,
    left: async () => (await Array.fromAsync(memory.list({ prefix: lineKeys.allSeen() }))).length,
    read: () => read,
  };
}

Deno.test("a turn reads a stretch of the rows, and the next one goes on behind it until all were looked at", async () => {
  const { kv, left, read } = await filled(90);
  const sweep = makeSweepSeen(kv, { rowsATurn: 20 });
  let removed = await sweep(NOW);
  assert.equal(read(), 20);
  for (let turn = 1; turn < 5; turn++) removed += await sweep(NOW);
  assert.equal(removed, 30);
  assert.equal(await left(), 60);
});

Deno.test("after the end it begins anew", async () => {
  const { kv, left } = await filled(30);
  const sweep = makeSweepSeen(kv, { rowsATurn: 20 });
  for (let turn = 0; turn < 2; turn++) await sweep(NOW);
  await kv.commit(new Change().set(lineKeys.seen("ses_0", "1@lid", "IN0"), OLD));
  for (let turn = 0; turn < 3; turn++) await sweep(NOW);
  assert.equal(await left(), 20);
});

Deno.test("a turn that is told to stop removes nothing more; the next one does", async () => {
  const { kv, left } = await filled(30);
  const sweep = makeSweepSeen(kv);
  assert.equal(await sweep(NOW, AbortSignal.abort()), 0);
  assert.equal(await left(), 30);
  assert.equal(await sweep(NOW), 10);
});

Deno.test("what was only reported as unreadable goes at the same age", async () => {
  const kv = new MemoryKv();
  await kv.commit(new Change().set(lineKeys.seen("ses_1", "1@lid", "OLD"), { reportedAt: OLD }));
  await kv.commit(new Change().set(lineKeys.seen("ses_1", "1@lid", "NEW"), { reportedAt: NOW }));
  assert.equal(await makeSweepSeen(kv)(NOW), 1);
  assert.deepEqual((await kv.get(lineKeys.seen("ses_1", "1@lid", "NEW"))).value, { reportedAt: NOW });
});

Deno.test("what came in since a chat was last read is unread, but not what the line received under another number", async () => {
  const kv = new MemoryKv();
  const line = newLine({ id: "ses_1", accountId: "acc_1", name: "line", pairingPhone: null, createdAt: OLD });
  const chat = "34600000002@s.whatsapp.net";
  const change = new Change().set(lineKeys.line("ses_1"), line);
  for (let i = 1; i <= 4; i++) change.set(lineKeys.seen("ses_1", chat, `IN${i}`), NOW + i);
  await kv.commit(change.set(lineKeys.chatRead("ses_1", chat), NOW + 2));
  const clock = { now: () => NOW + 10, after: () => () => {} };
  const unread = async () => {
    const { messages } = await makeUnread({ kv, clock, chats: chatsOn(kv) }).of("ses_1", {
      chats: [chat],
      networkId: null,
    });
    return messages.map(({ networkId }) => networkId);
  };
  assert.deepEqual(await unread(), ["IN2", "IN3", "IN4"]);
  await kv.commit(new Change().set(lineKeys.line("ses_1"), { ...line, numberSince: NOW + 4 }));
  assert.deepEqual(await unread(), ["IN4"]);
  const one = (networkId: string) =>
    makeUnread({ kv, clock, chats: chatsOn(kv) }).of("ses_1", { chats: [chat], networkId });
  assert.deepEqual((await one("IN4")).messages, [{ chat, networkId: "IN4", participant: null }]);
  await assert.rejects(one("IN3"), { code: "not_found" });
});
