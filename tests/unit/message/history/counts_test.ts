import assert from "node:assert/strict";
import { moveStatus } from "../../../../src/message/history/status_index.ts";
import { makeQueuedCount } from "../../../../src/message/history/counts.ts";
import { Change } from "../../../../src/store/kv.ts";
import { aBulk, aCaller, aSend, withSendWorld } from "../../../support/send_world.ts";

Deno.test("what waits is counted over all accounts, and what moved on is not", () =>
  withSendWorld(async ({ kv, accept, history }) => {
    const queuedCount = makeQueuedCount(kv);
    assert.equal(await queuedCount(), 0);
    const { messages } = await accept(aBulk(70));
    await accept(aSend({ caller: aCaller({}, "acc_2") }));
    assert.equal(await queuedCount(), 71);
    const message = await history.get("acc_1", messages[5]!.id);
    const change = new Change();
    moveStatus(change, message, { from: "queued", to: "processing" });
    await kv.commit(change);
    assert.equal(await queuedCount(), 70);
  }));
