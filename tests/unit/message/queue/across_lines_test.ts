import assert from "node:assert/strict";
import { busyLines, oldestWaiting } from "../../../../src/message/queue/across_lines.ts";
import { messageKeys } from "../../../../src/message/rows.ts";
import { Change } from "../../../../src/store/kv.ts";
import { MemoryDisk, MemoryKv } from "../../../support/memory_kv.ts";

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
      .set(messageKeys.schedule("ses_05", NOW, { historyNumber: 1 }), ROW)
      .set(messageKeys.schedule("ses_06", NOW + 1, { historyNumber: 1 }), ROW),
  );
  const reads = countLists(kv);
  const ids = Array.from({ length: 100 }, (_, i) => `ses_${String(i).padStart(2, "0")}`);
  assert.deepEqual([...await busyLines(kv, ids.toReversed(), NOW)].sort(), ["ses_03", "ses_05", "ses_07"]);
  assert.ok(reads() <= 7, `${reads()} reads`);
  assert.deepEqual(await busyLines(kv, [], NOW), new Set());
});

Deno.test("the message that has waited longest is found in a read for each lane in use", async () => {
  const kv = new MemoryKv(new MemoryDisk());
  const reads = countLists(kv);
  assert.equal(await oldestWaiting(kv), null);
  assert.equal(reads(), 1);
  const at = (ms: number) => ({ position: ms * 1000, historyNumber: 1 });
  const change = new Change().set(messageKeys.bulk("blk_1"), {
    accountId: "acc_1",
    sessionId: "ses_2",
    total: 1,
    firstHistoryNumber: 1,
    createdAt: NOW,
  });
  for (let ms = 7_000; ms < 7_050; ms++) change.set(messageKeys.queue("ses_1", "high", "cold", at(ms)), ROW);
  change.set(messageKeys.queue("ses_1", "low", "reply", at(6_000)), ROW);
  change.set(messageKeys.queue("ses_2", "normal", "cold", at(5_000)), { ...ROW, bulkId: "blk_1" });
  // Of a bulk that is still being accepted.
  change.set(messageKeys.queue("ses_3", "normal", "cold", at(1_000)), { ...ROW, bulkId: "blk_2" });
  change.set(messageKeys.queue("ses_3", "normal", "cold", at(5_500)), ROW);
  await kv.commit(change);
  assert.equal(await oldestWaiting(kv), 5_000);
  // Four lanes and the end; and each lane of the line with the bulk, one of them twice.
  const read = reads();
  assert.ok(read <= 5 + 10, `${read} reads`);
});

/** How many lists were read since this was called, or since it was last asked. */
function countLists(kv: MemoryKv): () => number {
  let reads = 0;
  const list = kv.list.bind(kv);
  kv.list = (...given) => {
    reads++;
    return list(...given);
  };
  return () => {
    const since = reads;
    reads = 0;
    return since;
  };
}
