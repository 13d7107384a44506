/** What waits on a line: its pauses, a view of it, cancelling, and messages that may not wait for ever. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { accepted, answerOf, post, refused } from "../support/api_calls.ts";
import { arrivals } from "../support/arrivals.ts";
import { runCommand } from "../support/gateway_process.ts";
import { sampleFile } from "../support/sample_files.ts";
import { noFileLeft } from "../support/media_folder.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915557000001";
const CUSTOMER = "4917557000001";
const MINUTE_MS = 60_000;
/** What a slow and busy machine may add to a pause; the unit tests hold the bounds to the millisecond. */
const LATE_MS = 10_000;
/** The first message leaves, the others wait for minutes. */
const SLOW = { delayMinMs: 4 * MINUTE_MS, delayMaxMs: 6 * MINUTE_MS };

Deno.test("what is queued can be seen, cancelled, and does not wait longer than it may", (t) =>
  withStage(() => openStage({ plan: SLOW }), async (stage) => {
    await stage.addPhone(CUSTOMER);
    const line = await stage.linkLine(LINE);
    const { sessionId } = line;
    const sendText = (text: string, ttl?: number) =>
      accepted(post(stage, "/messages/send/text", { json: { sessionId, to: CUSTOMER, text, ttl } }));
    const cancel = (id: string) => answerOf(stage.request("DELETE", `/messages/${id}`));
    const first = await sendText("the first leaves at once");
    await stage.status(first.messageId, "sent");

    await t.step("the view shows places and estimates, the plan's mean pause apart", async () => {
      const begun = systemClock.now();
      const ids = [];
      for (let i = 0; i < 5; i++) ids.push((await sendText(`waiting text ${i}`)).messageId);
      const queue = await stage.queue(line);
      assert.deepEqual(
        queue.map(({ messageId, to, status, position }) => ({ messageId, to, status, position })),
        ids.map((messageId, i) => ({ messageId, to: CUSTOMER, status: "queued", position: i + 1 })),
      );
      const departures = queue.map(({ estimatedDeparture }) => Date.parse(estimatedDeparture));
      assert.deepEqual(departures.slice(1).map((time, i) => time - departures[i]!), Array(4).fill(5 * MINUTE_MS));
      assert.ok(departures[0]! > begun && departures[0]! <= begun + SLOW.delayMaxMs);
      const limited = await stage.api.call("GET", `/sessions/${sessionId}/queue?limit=2`);
      assert.equal(limited.data.length, 2);
    });

    await t.step("a queued message is cancelled once; one that left is not", async () => {
      const [, second] = await stage.queue(line);
      const { status, body } = await cancel(second.messageId);
      assert.deepEqual([status, body.data.status, body.data.error.code], [200, "failed", "cancelled"]);
      assert.equal((await stage.status(second.messageId, "failed")).sentAt, null);
      await refused(cancel(second.messageId), 409, "not_cancellable");
      await refused(cancel(first.messageId), 409, "not_cancellable");
      const places = (await stage.queue(line)).map((
        { messageId, position },
      ) => [messageId === second.messageId, position]);
      assert.deepEqual(places, [[false, 1], [false, 2], [false, 3], [false, 4]]);
    });

    await t.step("a whole bulk is cancelled, and nothing else with it", async () => {
      const messages = Array.from({ length: 300 }, (_, i) => ({ to: CUSTOMER, text: `bulk text ${i}` }));
      const bulk = await accepted(post(stage, "/messages/send/bulk", { json: { sessionId, messages } }));
      const { status, body } = await cancel(bulk.bulkId);
      assert.deepEqual([status, body.data.cancelled, body.data.bulkId], [200, 300, bulk.bulkId]);
      assert.deepEqual(body.data.messageIds, bulk.messages.map(({ messageId }: Json) => messageId));
      await refused(cancel(bulk.bulkId), 409, "not_cancellable");
      assert.equal((await stage.queue(line)).length, 4);
      const { pagination } = await stage.api.call("GET", "/messages/history?status=failed");
      assert.equal(pagination.total, 301);
    });

    await t.step("a message that may wait a second ends as expired, and its file goes", async () => {
      const json = {
        sessionId,
        to: CUSTOMER,
        file: sampleFile("csv").toString("base64"),
        filename: "late.csv",
        ttl: 1,
      };
      const { messageId } = await accepted(post(stage, "/messages/send/document", { json }));
      await stage.status(messageId, "failed");
      const { data } = await stage.api.call("GET", "/messages/history?limit=1");
      assert.deepEqual([data[0].messageId, data[0].error.code], [messageId, "expired"]);
      await noFileLeft(stage);
    });

    await t.step("a pause that the plan shortens ends sooner, and the rest leaves in order", async () => {
      const plan = ["plan", "set", "staged", "--sessions", "10", "--delay-min", "0", "--delay-max", "50ms"];
      await runCommand(plan, stage.env);
      const last = await sendText("the last");
      const inbox = await arrivals(stage, CUSTOMER, { count: 6 });
      assert.deepEqual(inbox.map(({ text }) => text), [
        "the first leaves at once",
        ...[0, 2, 3, 4].map((i) => `waiting text ${i}`),
        "the last",
      ]);
      await stage.status(last.messageId, "sent"); // its phone has it before the gateway has the ack
      assert.deepEqual(await stage.queue(line), []);
    });

    await t.step("outside of the plan's hours messages wait, and say until when", async () => {
      const tomorrow = new Date(systemClock.now() + 24 * 60 * MINUTE_MS);
      const day = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"][tomorrow.getUTCDay()];
      await runCommand(["plan", "set", "staged", "--hours", `${day} 12:00-13:00 UTC`], stage.env);
      const opensAt = `${tomorrow.toISOString().slice(0, 10)}T12:00:00.000Z`;
      const held = await until(async () => {
        await sendText("for tomorrow");
        const [first] = await stage.queue(line);
        return first?.waitsFor ? first : null;
      }, "the hours to be in force");
      assert.deepEqual(held.waitsFor, { kind: "hours", until: opensAt });
      const record = await stage.api.call("GET", `/messages/${held.messageId}`);
      assert.deepEqual(record.data.waitsFor, held.waitsFor);
      const { data: listed } = await stage.api.call("GET", "/messages/history");
      assert.deepEqual(listed.find((item: Json) => item.messageId === held.messageId).waitsFor, held.waitsFor);
      assert.ok(!("waitsFor" in listed.at(-1)), "the first left long ago");
      const { data: health } = await stage.api.call("GET", `/sessions/${sessionId}/health`);
      assert.deepEqual(health.queue.waitsFor, held.waitsFor);
    });

    await t.step("who writes a word that opts out is never written to again, nor is what waited", async () => {
      await stage.api.call("PATCH", "/account", { optOutWords: ["STOP"] });
      const [waiting] = await stage.queue(line);
      await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "Stop!" });
      const { error } = await stage.status(waiting.messageId, "failed");
      assert.equal(error.code, "recipient_opted_out");
      await refused(
        post(stage, "/messages/send/text", { json: { to: CUSTOMER, text: "hi" } }),
        403,
        "recipient_opted_out",
      );
      const { data } = await stage.api.call("GET", "/optouts");
      assert.deepEqual(data.map(({ number, word }: Json) => [number, word]), [[CUSTOMER, "STOP"]]);
      await stage.api.call("DELETE", `/optouts/${CUSTOMER}`);
      await sendText("welcome back");
    });
  }));

Deno.test("the gaps between a line's departures lie within its plan's bounds, bulk and files included", () => {
  const bounds = { delayMinMs: 300, delayMaxMs: 2_300 };
  return withStage(() => openStage({ plan: bounds }), async (stage) => {
    await stage.addPhone(CUSTOMER);
    const { sessionId, number } = await stage.linkLine(LINE);
    const messages = Array.from({ length: 8 }, (_, i) => ({ to: CUSTOMER, text: `paced bulk ${i}` }));
    await accepted(post(stage, "/messages/send/bulk", { json: { sessionId, messages } }));
    const file = { to: CUSTOMER, file: sampleFile("png").toString("base64"), filename: "paced.png" };
    for (let i = 0; i < 2; i++) await accepted(post(stage, "/messages/send/document", { json: file }));
    await arrivals(stage, CUSTOMER, { count: 10 });
    const times = await departures(stage, number);
    const gaps = times.slice(1).map((time, i) => time - times[i]!);
    assert.equal(gaps.length, 9);
    for (const gap of gaps) {
      assert.ok(gap >= bounds.delayMinMs && gap <= bounds.delayMaxMs + LATE_MS, `gaps: ${gaps}`);
    }
    // Of random ones it is once in ten million runs that all lie so close.
    assert.ok(Math.max(...gaps) - Math.min(...gaps) > 100, `the gaps are not random: ${gaps}`);
  });
});

/** When each of the line's messages passed the server, Unix ms. */
async function departures(stage: Stage, line: string): Promise<number[]> {
  const wire: Json[] = await stage.control.call("GET", `/wire?line=${line}`);
  return wire.map(({ time }) => time);
}
