/** `Idempotency-Key` on the whole product: one message however often a send is replayed, over a crash too. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Json } from "../../src/cli/client.ts";
import { answerOf, type ApiAnswer, post, refused } from "../support/api_calls.ts";
import { arrivals } from "../support/arrivals.ts";
import { noFileLeft } from "../support/media_folder.ts";
import { sampleFile } from "../support/sample_files.ts";
import { openStage, withStage } from "../support/stage.ts";

const LINE = "4915555000001";
const CUSTOMER = "4917555000001";
const AT_ONCE = 50;

Deno.test("fifty posts with one Idempotency-Key at once make one message", (t) =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(CUSTOMER);
    await stage.linkLine(LINE);
    const sent: { headers: Record<string, string>; path: string; json: unknown; body: Json }[] = [];

    const bodies: [path: string, json: Record<string, unknown>][] = [
      ["/messages/send/text", { to: CUSTOMER, text: "only one of fifty" }],
      ["/messages/send/document", { to: CUSTOMER, file: sampleFile("csv").toString("base64"), filename: "one.csv" }],
      ["/message/send/pdf", { number: CUSTOMER, file: sampleFile("pdf").toString("base64"), filename: "one.pdf" }],
      ["/messages/send/bulk", { messages: [{ to: CUSTOMER, text: "first of two" }, { to: CUSTOMER, text: "second" }] }],
    ];
    for (const [path, json] of bodies) {
      await t.step(`by ${path}: one answer to all, and 422 to another body`, async () => {
        const headers = { "idempotency-key": `order 1042 ${path}`.replaceAll(" ", "-") };
        const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => post(stage, path, { json, headers })));
        const body = assertOneAnswer(answers);
        sent.push({ headers, path, json, body });
        const other = { ...json, ...(path.endsWith("pdf") ? { message: "another" } : { ttl: 60 }) };
        await refused(post(stage, path, { json: other, headers }), 422, "idempotency_key_reused");
      });
    }

    await t.step("by multipart upload, whose boundary differs each time", async () => {
      const upload = (content: Uint8Array) => {
        const form = new FormData();
        form.set("to", CUSTOMER);
        form.set("file", new File([Uint8Array.from(content)], "one.png"));
        return answerOf(
          stage.request("POST", "/messages/send/file", { body: form, headers: { "idempotency-key": "upload-1" } }),
        );
      };
      assertOneAnswer(await Promise.all(Array.from({ length: AT_ONCE }, () => upload(sampleFile("png")))));
      await refused(upload(Buffer.from("another file")), 422, "idempotency_key_reused");
    });

    await t.step("a session too is made once", async () => {
      const options = { json: { name: "made once" }, headers: { "idempotency-key": "session-1" } };
      const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => post(stage, "/sessions", options)));
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]));
      assert.equal(new Set(answers.map(({ body }) => body.data._id)).size, 1);
      const { data } = await stage.api.call("GET", "/sessions");
      assert.equal(data.filter(({ name }: Json) => name === "made once").length, 1);
    });

    await t.step("the phone has each once, in order, and no file is left behind", async () => {
      const inbox = await arrivals(stage, CUSTOMER, { count: 6 });
      assert.deepEqual(
        inbox.map(({ text, filename, type }) => text ?? filename ?? type),
        ["only one of fifty", "one.csv", "one.pdf", "first of two", "second", "imageMessage"],
      );
      const { pagination } = await stage.api.call("GET", "/messages/history");
      assert.equal(pagination.total, 6);
      await noFileLeft(stage);
    });

    await t.step("after kill -9 the first answer is still given, and nothing is sent again", async () => {
      await stage.gateway.kill();
      await stage.gateway.start();
      for (const { path, json, headers, body } of sent) {
        const again = await post(stage, path, { json, headers });
        assert.deepEqual([again.status, again.body], [202, body]);
      }
      const { pagination } = await stage.api.call("GET", "/messages/history");
      assert.equal(pagination.total, 6);
    });
  }));

/** The body that all of them have. */
function assertOneAnswer(answers: readonly ApiAnswer[]): Json {
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([202]));
  assert.equal(new Set(answers.map(({ body }) => JSON.stringify(body))).size, 1);
  return answers[0]!.body;
}
