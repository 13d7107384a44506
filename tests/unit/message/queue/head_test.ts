/** What it costs to find the message that leaves next. */
import assert from "node:assert/strict";
import { QueueHead } from "../../../../src/message/queue/head.ts";
import { Lanes } from "../../../../src/message/queue/lanes.ts";
import type { Message } from "../../../../src/message/message.ts";
import type { Kv } from "../../../../src/store/kv.ts";
import { aBulk, aLine, aSend, endMessage, withSendWorld } from "../../../support/send_world.ts";

/** The store, and how many rows were read from it. */
function counting(kv: Kv): { kv: Kv; rows: () => number } {
  let rows = 0;
  return {
    kv: {
      ...kv,
      get: (key) => (rows++, kv.get(key)),
      getMany: (keys) => (rows += keys.length, kv.getMany(keys)),
      async *list(selector, options) {
        for await (const row of kv.list(selector, options)) {
          rows++;
          yield row;
        }
      },
    },
    rows: () => rows,
  };
}

Deno.test("the head is found with as many reads of a long queue as of a short one", () =>
  withSendWorld(async ({ accept, kv, runtime }) => {
    const reads: number[] = [];
    for (const count of [2, 400, 4_000]) {
      await accept(aBulk(count));
      await accept(aBulk(count, { sendAt: runtime.clock.now() + 1_000_000 }));
      const counted = counting(kv);
      await new Lanes(counted.kv, aLine().id).release(runtime.clock.now(), () => "cold");
      assert.ok(
        await new QueueHead(counted.kv, { lineId: aLine().id, accountId: "acc_1" }).next({
          laneOf: () => "cold",
          oldestBefore: null,
          behind: null,
        }),
      );
      reads.push(counted.rows());
    }
    assert.equal(new Set(reads).size, 1, reads.join());
    assert.ok(reads[0]! <= 8, `${reads[0]} rows`);
  }));

Deno.test("rows that are read ahead give the order that the queue has, whatever is accepted meanwhile, for fewer reads", () =>
  withSendWorld(async ({ accept, kv }) => {
    const chats = ["34600000001", "34600000002", "34600000003"];
    const counted = counting(kv);
    const reading = new QueueHead(counted.kv, { lineId: aLine().id, accountId: "acc_1" });
    const choice = { laneOf: () => "cold" as const, oldestBefore: null };
    const add = (i: number, priority: "high" | "normal" | "low") =>
      accept(aSend({ priority, items: [{ to: chats[i % 3]!, content: { kind: "text", text: `text ${i}` } }] }));
    for (let i = 0; i < 60; i++) await add(i, "normal");
    let before: Message | null = null;
    let departed = 0;
    let rowsOfOneLane = Infinity;
    for (;;) {
      // Nobody tells of what is cancelled: the message itself says so.
      if (departed === 25) {
        await endMessage(
          kv,
          (await new QueueHead(kv, { lineId: aLine().id, accountId: "acc_1" }).next({ ...choice, behind: before!.id }))!
            .value,
        );
      }
      if (departed === 29) rowsOfOneLane = counted.rows();
      if (departed === 30 || departed === 31) {
        await add(departed, departed === 30 ? "high" : "low");
        reading.changed();
      }
      const behind: string | null = before?.id ?? null;
      const wanted = await new QueueHead(kv, { lineId: aLine().id, accountId: "acc_1" }).next({ ...choice, behind });
      const next = await reading.next({ ...choice, behind });
      assert.equal(next?.value.id, wanted?.value.id, `after ${departed}`);
      if (before) await endMessage(kv, before);
      if (next === null) break;
      before = next.value;
      departed++;
    }
    assert.equal(departed, 61);
    assert.ok(rowsOfOneLane < 4 * 29, `${rowsOfOneLane} rows`);
  }));
