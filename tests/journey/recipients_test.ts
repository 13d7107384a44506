/** Who a message can be sent to, what a text can hold, and which line sends when none is named. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { accepted, post, refused } from "../support/api_calls.ts";
import { arrivals } from "../support/arrivals.ts";
import { PAGELESS_PDF } from "../support/sample_files.ts";
import { openStage, withStage } from "../support/stage.ts";

const LINE = "4915553000001";
const SECOND_LINE = "4915553000002";
const CUSTOMER = "4917553000001";
const OTHER = "4917553000002";
const NOBODY = "4917559999999";

Deno.test("texts and recipients of every form arrive, and whoever has no account is told of", (t) =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(CUSTOMER);
    await stage.addPhone(OTHER);
    const first = await stage.linkLine(LINE);
    const second = await stage.linkLine(SECOND_LINE);
    const sendText = (to: string, text: string) => post(stage, "/messages/send/text", { json: { to, text } });

    await t.step("a number, its JID and its hidden LID reach the same phone", async () => {
      const { lid } = await stage.control.call("GET", `/phones/${CUSTOMER}`);
      const forms = [CUSTOMER, `${CUSTOMER}@s.whatsapp.net`, lid.includes("@") ? lid : `${lid}@lid`];
      for (const to of forms) {
        await accepted(sendText(to, `hello to ${to}`));
      }
      const inbox = await arrivals(stage, CUSTOMER, { count: 3 });
      assert.deepEqual(inbox.map(({ text }) => text), forms.map((to) => `hello to ${to}`));
    });

    await t.step(
      "a mobile number that is written as people write it reaches the phone under the network's form",
      async () => {
        for (const [written, number] of [["5511987654321", "551187654321"], ["525512345678", "5215512345678"]]) {
          await stage.addPhone(number!);
          await accepted(sendText(written!, `hello to ${written}`));
          await stage.arrival(number!, ({ text }) => text === `hello to ${written}`);
          const { data: { exists, jid } } = await stage.api.call("POST", `/sessions/${first.sessionId}/check-number`, {
            number: written,
          });
          assert.deepEqual([exists, jid], [true, `${number}@s.whatsapp.net`]);
        }
      },
    );

    await t.step("65,536 characters arrive, emoji and lines included; one more is refused", async () => {
      const line = "Grüße 👋🏽 مرحبا 你好 👨‍👩‍👧‍👦\n";
      const text = [...line.repeat(4_000)].slice(0, 65_536).join("").replace(/\s$/, "!");
      await accepted(sendText(CUSTOMER, text));
      const doves = "🕊".repeat(65_536);
      await accepted(sendText(CUSTOMER, doves));
      await stage.arrival(CUSTOMER, (message) => message.text === text);
      await stage.arrival(CUSTOMER, (message) => message.text === doves);
      const { body } = await refused(
        sendText(CUSTOMER, `${doves}x`),
        400,
        "validation_failed",
      );
      assert.equal(body.errors[0].path, "text");
    });

    await t.step(
      "a number without an account ends as failed, with a clear reason, and the next one leaves",
      async () => {
        const { messageId } = await accepted(
          sendText(NOBODY, "is anybody there"),
        );
        await stage.status(messageId, "failed");
        const { data } = await stage.api.call("GET", "/messages/history?status=failed");
        assert.deepEqual(data.map(({ messageId, to, error }: Json) => ({ messageId, to, error })), [{
          messageId,
          to: NOBODY,
          error: { code: "number_not_registered", message: `${NOBODY} is not on WhatsApp.` },
        }]);
        await accepted(sendText(OTHER, "the line goes on"));
        await stage.arrival(OTHER, (message) => message.text === "the line goes on");
      },
    );

    await t.step("without a session the oldest connected line sends", async () => {
      await accepted(sendText(OTHER, "by the first line"));
      await stage.arrival(OTHER, (message) => message.text === "by the first line");
      await stage.api.call("POST", `/sessions/${first.sessionId}/disconnect`);
      await accepted(sendText(OTHER, "by the second line"));
      const pdf = { file: PAGELESS_PDF.toString("base64"), number: OTHER, filename: "second.pdf" };
      await accepted(post(stage, "/message/send/pdf", { json: pdf }));
      const inbox = (await arrivals(stage, OTHER, { count: 4 })).slice(-3);
      assert.deepEqual(
        inbox.map(({ from }) => from),
        [LINE, SECOND_LINE, SECOND_LINE].map((n) => `${n}@s.whatsapp.net`),
      );
      await stage.api.call("POST", `/sessions/${second.sessionId}/disconnect`);
      await refused(
        sendText(OTHER, "by no line"),
        409,
        "no_connected_session",
      );
    });
  }));
