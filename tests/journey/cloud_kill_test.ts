/** A kill between the answer of the official shape and the status: one status each, under the same id. */
import assert from "node:assert/strict";
import { Application } from "../support/cloud_application.ts";
import { onStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915200000047";
const ANA = "4917000000047";
const MESSAGES = 8;

onStage(
  "after kill -9 between answers and statuses, each message has one status of each kind, by its id",
  async (stage) => {
    await stage.addPhone(ANA, "Ana");
    await stage.linkLine(LINE);
    const application = await Application.start();
    await application.register(stage, { events: ["message.sent", "message.status", "message.failed"] });
    const send = async (i: number) => {
      const response = await fetch(new URL(`/cloud/v24.0/${LINE}/messages`, stage.gateway.baseUrl), {
        method: "POST",
        headers: { authorization: `Bearer ${stage.apiKey}` },
        body: JSON.stringify({
          messaging_product: "whatsapp",
          to: ANA,
          type: "text",
          text: { body: `text ${i}` },
          biz_opaque_callback_data: `order ${i}`,
        }),
      });
      assert.equal(response.status, 200);
      return (await response.json()).messages[0].id as string;
    };
    // Nothing is acknowledged before the kill.
    await stage.control.call("POST", "/faults", { line: LINE, kind: "hold_acks", seconds: 3600 });
    const ids: string[] = [];
    for (let i = 0; i < MESSAGES; i++) ids.push(await send(i));
    await stage.gateway.kill();
    assert.deepEqual(application.values(), []);
    await stage.control.call("DELETE", `/faults/${LINE}`);
    await stage.gateway.start();

    const told = () => ids.map((id) => application.statuses(id).map(({ status }) => status).join());
    await until(() => Promise.resolve(told().every((each) => each === "sent,delivered") || null), "all statuses");
    for (const [i, id] of ids.entries()) {
      assert.deepEqual(
        application.statuses(id).map(({ biz_opaque_callback_data }) => biz_opaque_callback_data),
        [`order ${i}`, `order ${i}`],
      );
    }
    const arrived = (await stage.inbox(ANA)).filter(({ text }) => text?.startsWith("text "));
    assert.deepEqual(arrived.map(({ text }) => text), ids.map((_, i) => `text ${i}`));
    // None of another message, and none twice.
    assert.equal(application.values().length, 2 * MESSAGES);
    await application.receiver.close();
  },
);
