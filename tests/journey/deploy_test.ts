/** The API as a fetch handler (`deploy.ts`) on a Deno KV by URL, with a bucket for files and a worker beside it. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Json } from "../../src/cli/client.ts";
import { systemRandom } from "../../src/runtime.ts";
import { denoKvProgram } from "../support/denokv.ts";
import { freePort } from "../support/free_port.ts";
import { RolesStage } from "../support/roles_stage.ts";
import { s3Program, startS3 } from "../support/s3_server.ts";
import { until } from "../support/until.ts";

const LINE = "4915200000201";
const ANA = "4917000000099";

Deno.test({
  name: "a handler that may write, run and load nothing serves linking, texts and files, on denokv and a bucket",
  ignore: denoKvProgram() === null || s3Program() === null,
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using stack = new AsyncDisposableStack();
    const s3 = stack.adopt(await startS3(), (server) => server.remove());
    const port = freePort();
    // Links to files lead to the handler, whoever makes them.
    const env = { ...s3.env, PALOMA_PUBLIC_URL: `http://127.0.0.1:${port}` };
    const stage = stack.adopt(await RolesStage.open("denokv", env), (stage) => stage.close());
    const handler = stack.adopt(await stage.startHandler(port), (handler) => handler.end());
    await stage.start("worker");
    const api = stage.client(handler);
    await stage.control.call("POST", "/phones", { number: ANA });
    const sessionId = (await stage.linkLines(api, [LINE])).get(LINE)!;

    await api.call("POST", "/messages/send/text", { sessionId, to: ANA, text: "from a handler" });
    const file = systemRandom.bytes(300_000);
    const form = new FormData();
    form.set("to", ANA);
    form.set("file", new File([Uint8Array.from(file)], "report.dat"));
    const headers = { "x-api-key": stage.apiKey };
    const answer = await fetch(`${handler.url}/v1/messages/send/file`, { method: "POST", headers, body: form });
    assert.equal(answer.status, 202, await answer.text());
    const inbox = await until(async () => {
      const there = await stage.inbox(ANA);
      return there.length === 2 ? there : null;
    }, "both messages at the phone");
    assert.equal(inbox.find(({ text }) => text !== null)?.text, "from a handler");
    assert.equal(inbox.find(({ sha256 }) => sha256 !== null)?.sha256, sha256(file));

    const reply = systemRandom.bytes(200_000);
    await stage.control.call("POST", `/phones/${ANA}/messages`, {
      to: LINE,
      kind: "document",
      mimetype: "application/pdf",
      file: Buffer.from(reply).toString("base64"),
    });
    const received = await until(async () => {
      const { data } = await api.call("GET", "/events?types=message.received");
      return (data as Json[])[0];
    }, "the file that came in");
    const { url } = received.data.media;
    assert.ok(url.startsWith(handler.url), url);
    assert.equal(sha256(new Uint8Array(await (await fetch(url)).arrayBuffer())), sha256(reply));
    assert.notEqual(s3.objects().length, 0);
  },
});

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
