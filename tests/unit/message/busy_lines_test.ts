import assert from "node:assert/strict";
import { busyLines } from "../../../src/message/busy_lines.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import { MemoryDisk, MemoryKv } from "../../support/memory_kv.ts";

const NOW = 1_000_000;
const ROW = { messageId: "msg_1", chat: "34600000002", bulkId: null };
const PLACE = { position: 1, historyNumber: 1 };

Deno.test("of many lines those are found that have a message for now, in a read each", async () => {
  const kv = new MemoryKv(new MemoryDisk());
  await kv.commit(
    new Change()
      .set(messageKeys.queue("ses_03", "low", "cold", PLACE), ROW)
      .set(messageKeys.queue("ses_03", "low", "cold", { ...PLACE, position: 2 }), ROW)
      .set(messageKeys.queue("ses_07", "high", "reply", PLACE), ROW)
      .set(messageKeys.queue("another's", "high", "reply", PLACE), ROW)
      .set(messageKeys.queue("ses_07, another's", "high", "reply", PLACE), ROW)
      .set(messageKeys.schedule("ses_05", NOW, 1), ROW)
      .set(messageKeys.schedule("ses_06", NOW + 1, 1), ROW),
  );
  let reads = 0;
  const list = kv.list.bind(kv);
  kv.list = (...given) => {
    reads++;
    return list(...given);
  };
  const ids = Array.from({ length: 100 }, (_, i) => `ses_${String(i).padStart(2, "0")}`);
  assert.deepEqual([...await busyLines(kv, ids.toReversed(), NOW)].sort(), ["ses_03", "ses_05", "ses_07"]);
  assert.ok(reads <= 7, `${reads} reads`);
  assert.deepEqual(await busyLines(kv, [], NOW), new Set());
});
