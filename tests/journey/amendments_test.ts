/** Changing and deleting what was sent, and the whole record of a message: a phone shows what became of it. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { accepted, answerOf, post, refused } from "../support/api_calls.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915562000001";
const CUSTOMER = "4917562000001";

function edit(stage: Stage, messageId: string, text: string) {
  stage.secrets.read({ text });
  const init = { headers: { "content-type": "application/json" }, body: JSON.stringify({ text }) };
  return answerOf(stage.request("PATCH", `/messages/${messageId}`, init));
}

const revoke = (stage: Stage, messageId: string) => post(stage, `/messages/${messageId}/revoke`, { json: {} });

async function record(stage: Stage, messageId: string): Promise<Json> {
  return (await stage.api.call("GET", `/messages/${messageId}`)).data;
}

const steps = ({ life }: Json) => life.map(({ status }: Json) => status);

Deno.test("what was sent is changed and deleted on the phones, what waits where it stands", (t) =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(CUSTOMER);
    const line = await stage.linkLine(LINE);

    await t.step("a text that was sent is changed, and its life says so", async () => {
      const id = await stage.sendText(line, CUSTOMER, "ten oclock");
      await stage.status(id, "sent");
      await stage.arrival(CUSTOMER, ({ text }) => text === "ten oclock");
      const { status, body } = await edit(stage, id, "ten o'clock");
      assert.deepEqual([status, body.data.text, body.data.status], [200, "ten o'clock", "sent"], JSON.stringify(body));
      assert.ok((await stage.arrival(CUSTOMER, ({ text }) => text === "ten o'clock")).edited);
      const { life } = await record(stage, id);
      assert.deepEqual(life.map(({ status }: Json) => status).filter((step: string) => step !== "delivered"), [
        "queued",
        "processing",
        "sent",
        "edited",
      ]);
      assert.equal((await stage.api.call("GET", `/messages/history?limit=1`)).data[0].text, "ten o'clock");
    });

    await t.step(
      "a message that was sent is deleted for everyone, once, and is not to be changed any more",
      async () => {
        const id = await stage.sendText(line, CUSTOMER, "to the wrong one");
        await until(
          async () => steps(await record(stage, id)).includes("delivered"),
          "its receipt, which ends its life",
        );
        const { status, body } = await revoke(stage, id);
        assert.deepEqual(
          [status, body.data.status, steps(body.data).at(-1)],
          [200, "sent", "revoked"],
          JSON.stringify(body),
        );
        await stage.arrival(CUSTOMER, ({ revoked }) => revoked);
        await refused(revoke(stage, id), 409, "not_revocable");
        await refused(edit(stage, id, "again"), 409, "not_editable");
        const sends = { text: { text: "as I said", replyTo: id }, forward: { messageId: id } };
        for (const [kind, fields] of Object.entries(sends)) {
          const again = post(stage, `/messages/send/${kind}`, { json: { to: CUSTOMER, ...fields } });
          const { body } = await refused(again, 400, "validation_failed");
          assert.match(JSON.stringify(body), /is a message that was deleted/);
        }
      },
    );

    await t.step("what no text is cannot be changed; what failed can be neither", async () => {
      const place = { to: CUSTOMER, latitude: 1, longitude: 2 };
      const { messageId } = await accepted(post(stage, "/messages/send/location", { json: place }));
      await stage.status(messageId, "sent");
      await refused(edit(stage, messageId, "here"), 409, "not_editable");
      const failed = await stage.sendText(line, "4917562999999", "nobody");
      const { error } = await stage.status(failed, "failed");
      assert.equal(error.code, "number_not_registered");
      assert.deepEqual(steps(await record(stage, failed)).at(-1), "failed");
      await refused(edit(stage, failed, "somebody"), 409, "not_editable");
      await refused(revoke(stage, failed), 409, "not_revocable");
    });

    await t.step("while the line is away what waits is changed or cancelled, and what was sent is not", async () => {
      const sent = await stage.sendText(line, CUSTOMER, "before");
      await stage.status(sent, "sent");
      await stage.api.call("POST", `/sessions/${line.sessionId}/disconnect`);
      const first = await stage.sendText(line, CUSTOMER, "draft");
      const second = await stage.sendText(line, CUSTOMER, "never");
      await refused(edit(stage, sent, "after"), 502, "network_error");
      await refused(revoke(stage, sent), 502, "network_error");
      const { body: { data } } = await edit(stage, first, "final");
      assert.deepEqual([data.status, data.text, steps(data)], ["queued", "final", ["queued"]]);
      const { body: { data: cancelled } } = await revoke(stage, second);
      assert.deepEqual([cancelled.status, cancelled.error.code], ["failed", "cancelled"]);
      await stage.gateway.kill();
      await stage.gateway.start();
      await stage.api.call("POST", `/sessions/${line.sessionId}/reconnect`);
      await stage.status(first, "sent");
      await stage.arrival(CUSTOMER, ({ text }) => text === "final");
      assert.deepEqual((await stage.inbox(CUSTOMER)).filter(({ text }) => text === "draft" || text === "never"), []);
    });

    await t.step("a message that was sent before the restart is changed after it", async () => {
      const { data } = await stage.api.call("GET", "/messages/history?status=sent&limit=1");
      await until(async () => (await edit(stage, data[0].messageId, "final, final")).status === 200, "the edit");
      await stage.arrival(CUSTOMER, ({ text, edited }) => text === "final, final" && edited);
    });
  }));
