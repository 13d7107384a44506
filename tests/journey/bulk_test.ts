/** Bulks of ten thousand: one 202, and all or none of them when the gateway is killed while it accepts. */
import assert from "node:assert/strict";
import { openData } from "../../src/engines.ts";
import { sleep, systemClock, systemRandom } from "../../src/runtime.ts";
import { messageKeys } from "../../src/message/rows.ts";
import type { PrefixOf, Row } from "../../src/store/kv.ts";
import { answerOf, type ApiAnswer, refused } from "../support/api_calls.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";
import { dataConfigOf } from "../support/test_store.ts";
import { silentRuntime } from "../support/runtime.ts";

const LINE = "4915556000001";
const CUSTOMER = "4917556000001";
const MONTHLY = 1_000_000;
const PLAN = { delayMinMs: 0, delayMaxMs: 0, daily: null, monthly: MONTHLY };
const BULK = 10_000;
const KILLS = 5;

Deno.test("a bulk of 10,000 is accepted in one 202, and whole or not at all when the gateway is killed", (t) =>
  withStage(() => openStage({ plan: PLAN }), async (stage) => {
    const { sessionId } = await stage.linkLine(LINE);
    // Paused, so that nothing leaves and what was accepted can be counted.
    await stage.api.call("POST", `/sessions/${sessionId}/disconnect`);
    const sendBulk = (count: number, words: string): Promise<ApiAnswer> => {
      const messages = Array.from({ length: count }, (_, i) => ({ to: CUSTOMER, text: `${words} ${i}` }));
      // All of them hold these words: what the log is searched for.
      stage.secrets.add(words);
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify({ sessionId, messages });
      return answerOf(stage.request("POST", "/messages/send/bulk", { headers, body }));
    };
    let tookMs = 0;
    let accepted = 0;

    await t.step("one 202 lists all of them, in their order", async () => {
      const begun = systemClock.now();
      const { status, body, headers } = await sendBulk(BULK, "message of the first bulk");
      tookMs = systemClock.now() - begun;
      assert.deepEqual([status, body.total, body.status, body.messages.length], [202, BULK, "queued", BULK]);
      assert.equal(new Set(body.messages.map(({ messageId }: { messageId: string }) => messageId)).size, BULK);
      assert.deepEqual(body.messages.at(-1), {
        ...body.messages.at(-1),
        index: BULK - 1,
        to: CUSTOMER,
        status: "queued",
      });
      assert.equal(headers.get("x-quota-monthly-remaining"), String(MONTHLY - BULK));
      accepted += BULK;
      await assertCounts(stage, sessionId, accepted);
    });

    await t.step("10,001 are refused", async () => {
      const { body } = await refused(sendBulk(BULK + 1, "one too many"), 400, "validation_failed");
      assert.equal(body.errors[0].path, "messages");
      await assertCounts(stage, sessionId, accepted);
    });

    await t.step(`kill -9 at ${KILLS} random moments of an accept leaves all or none`, async () => {
      for (let kill = 1; kill <= KILLS; kill++) {
        const answer = sendBulk(BULK, `message of bulk ${kill}`).then(({ status }) => status, () => null);
        await sleep(systemClock, systemRandom.between(0, 2 * tookMs));
        await stage.gateway.kill();
        const status = await answer;
        await stage.gateway.start();
        const { pagination: { total } } = await stage.api.call("GET", "/messages/history");
        assert.ok(total === accepted || total === accepted + BULK, `${total - accepted} of ${BULK} were accepted`);
        if (status === 202) assert.equal(total, accepted + BULK, "a 202 is on disk");
        accepted = total;
        await assertCounts(stage, sessionId, accepted);
      }
    });
  }));

/** What the history, the quota and the store know of messages agrees. */
async function assertCounts(stage: Stage, sessionId: string, accepted: number): Promise<void> {
  const all = await stage.api.call("GET", "/messages/history");
  const queued = await stage.api.call("GET", "/messages/history?status=queued");
  assert.deepEqual([all.pagination.total, queued.pagination.total], [accepted, accepted]);
  const oldest = await stage.api.call("GET", `/messages/history?limit=1&page=${accepted}`);
  assert.equal(oldest.data.length, 1);
  const config = dataConfigOf(stage.dataDir);
  const data = await openData(config, silentRuntime());
  try {
    // Many machines share the store: what a crash left staged is there until a sweep, and counts for nothing.
    const staged = new Set((await Array.fromAsync(data.kv.list({ prefix: messageKeys.stagedBulks() }))).map(bulkOf));
    const rows = async (prefix: PrefixOf<{ bulkId: string | null }>) => {
      const all = await Array.fromAsync(data.kv.list({ prefix }));
      return all.filter(({ value: { bulkId } }) => bulkId === null || !staged.has(bulkId)).length;
    };
    if (config.store === null) assert.equal(staged.size, 0);
    assert.deepEqual([await rows(messageKeys.messages()), await rows(messageKeys.queueOfLine(sessionId))], [
      accepted,
      accepted,
    ]);
    const usage = (await data.kv.get(messageKeys.ledger(stage.accountId))).value?.usage;
    assert.equal(usage?.monthly, accepted);
  } finally {
    data.close();
  }
}

const bulkOf = ({ key }: Row<unknown>) => String(key.at(-1));
