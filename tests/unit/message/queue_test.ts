/** What it costs to find the message that leaves next. */
import assert from "node:assert/strict";
import { LineQueue } from "../../../src/message/queue.ts";
import type { Kv } from "../../../src/store/kv.ts";
import { aBulk, aLine, withSendWorld } from "../../support/send_world.ts";

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
      const queue = new LineQueue(counted.kv, aLine().id);
      await queue.release(runtime.clock.now(), () => "cold");
      assert.ok(await queue.next({ laneOf: () => "cold", oldestBefore: null, behind: null }));
      reads.push(counted.rows());
    }
    assert.equal(new Set(reads).size, 1, reads.join());
    assert.ok(reads[0]! <= 8, `${reads[0]} rows`);
  }));
