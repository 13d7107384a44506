import assert from "node:assert/strict";
import { panelKeys } from "../../../src/panel/rows.ts";
import { makeUsage } from "../../../src/panel/usage.ts";
import { Change } from "../../../src/store/kv.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";
import { testEvents } from "../../support/bell.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

Deno.test("counts of days are kept for a year", async () => {
  const runtime = testRuntime();
  const kv = new MemoryKv();
  const events = testEvents(kv, runtime);
  const usage = makeUsage({ kv, events });
  for (let day = 0; day < 400; day++) {
    const change = new Change();
    const data = { messageId: "msg_1", networkId: "3EB0", jobId: "job_1", to: "34600000001", sentAt: "" };
    events.append(change, { event: "message.sent", accountId: "acc_1", sessionId: "ses_1", sessionName: "", data });
    await kv.commit(change);
    assert.equal((await usage.days("acc_1", "0000")).days.at(-1)?.sent, 1);
    await runtime.clock.advance(DAY_MS);
  }
  assert.equal((await Array.fromAsync(kv.list({ prefix: panelKeys.usageOf("acc_1") }))).length, 367);
});
