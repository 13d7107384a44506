import assert from "node:assert/strict";
import { newLine } from "../../../src/line/line.ts";
import { readQueue, writeQueue } from "../../../src/line/moved_queue.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { completeChats } from "../../../src/message/queue/chat_order.ts";
import { QueueHead } from "../../../src/message/queue/head.ts";
import type { Message } from "../../../src/message/message.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { Change, type Kv } from "../../../src/store/kv.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";
import { aSend, sendWorld } from "../../support/send_world.ts";

Deno.test("a queue that is too large to be moved is found so before its files are read", async () => {
  const kv = new MemoryKv();
  const { accept } = sendWorld(kv, testRuntime());
  const file = { fileId: "med_1", size: 100_000, sha256: "0".repeat(64) };
  const large = { kind: "document", filename: "a.bin", mimetype: "application/octet-stream", caption: null, file };
  await accept(aSend());
  for (let i = 0; i < 2; i++) await accept(aSend({ items: [{ to: "34600000001", content: large as never }] }));
  let reads = 0;
  const media = {
    read() {
      reads++;
      return Promise.resolve(new Blob(["bytes"]).stream());
    },
  };
  assert.equal(await readQueue({ kv, media }, "ses_1", 150_000), null);
  assert.equal(reads, 1, "of the one that still fitted");
  assert.equal((await readQueue({ kv, media }, "ses_1", 300_000))?.length, 3);
});

Deno.test("a moved queue keeps its chats' order, though its positions are older than what was accepted at the new gateway", async () => {
  const [from, to] = [new MemoryKv(), new MemoryKv()];
  const old = sendWorld(from, testRuntime());
  const runtime = testRuntime(2);
  await runtime.clock.advance(60_000);
  const { accept } = sendWorld(to, runtime);
  const send = (number: number, priority: "high" | "low") =>
    aSend({ priority, items: [{ to: String(34600000000 + number), content: { kind: "text", text: "hello" } }] });
  for (let i = 0; i < 60; i++) await old.accept(send(i, "low"));
  const moved = await readQueue(
    { kv: from, media: { read: () => Promise.reject(new Error("no file")) } },
    "ses_1",
    1e6,
  );

  const line = newLine({ id: "ses_1", accountId: "acc_1", name: "moved", pairingPhone: null, createdAt: 0 });
  await to.commit(
    new Change().set(lineKeys.line(line.id), line)
      .set(lineKeys.imported("imp_1"), { lineId: line.id, messages: 0, done: false }),
  );
  const place = { lineId: line.id, accountId: "acc_1" };
  const here = { id: line.id, row: await to.get(lineKeys.line(line.id)) };
  await accept({ ...send(99, "low"), line: here });
  let commits = 0;
  const racing: Kv = {
    ...to,
    async commit(change) {
      if (commits++ === 1) await completeChats(to, place);
      return await to.commit(change);
    },
  };
  const media = { write: () => Promise.reject(new Error("no file")) };
  await writeQueue({ kv: racing, media, runtime }, line, { importId: "imp_1", moved: moved! });
  const { value: last } = await to.get<Message>(messageKeys.message(moved!.at(-1)!.message.id));
  await accept({ ...send(59, "high"), line: here });
  const head = new QueueHead(to, place);
  const first = await head.next({ laneOf: () => "cold", oldestBefore: null, behind: null });
  assert.equal(first?.value.id, last!.id);
});
