/** `/cloud`, media: uploads that are sent by their id as often as one likes, and files that were received. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { get } from "node:http";
import type { Json } from "../../src/cli/client.ts";
import { mediaIdOf } from "../../src/cloud/media_id.ts";
import { cloudClient, uploadForm } from "../support/cloud_client.ts";
import { sampleFile } from "../support/sample_files.ts";
import { onSharedStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const onMedia = onSharedStage("files of the official API");

const bytesOf = (extension: string) => new Uint8Array(sampleFile(extension));
const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** What is sent by id: the type's member beside the id, the file, its declared type, and as what it arrives. */
const SENT: readonly [type: string, part: Json, extension: string, mimetype: string, arrives: Json][] = [
  ["image", { caption: "a cat" }, "jpg", "image/jpeg", {
    type: "imageMessage",
    caption: "a cat",
    mimetype: "image/jpeg",
  }],
  ["video", { caption: "a film" }, "mp4", "video/mp4", {
    type: "videoMessage",
    caption: "a film",
    mimetype: "video/mp4",
  }],
  ["audio", {}, "mp3", "audio/mpeg", { type: "audioMessage", voiceNote: false, mimetype: "audio/mpeg" }],
  ["audio", { voice: true }, "ogg", "audio/ogg", { type: "audioMessage", voiceNote: true }],
  ["sticker", {}, "webp", "image/webp", { type: "stickerMessage", mimetype: "image/webp" }],
  ["document", { filename: "bill.pdf", caption: "due" }, "pdf", "application/pdf", {
    type: "documentMessage",
    filename: "bill.pdf",
    caption: "due",
    mimetype: "application/pdf",
  }],
];

onMedia("uploads are described, downloaded, sent by id more than once, and deleted", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA, "Ana");
  const { sessionId } = await stage.linkLine(LINE);
  const client = cloudClient(stage, LINE);

  for (const [type, part, extension, mimetype, arrives] of SENT) {
    const bytes = bytesOf(extension);
    // The name says nothing of the kind: the message's type decides it.
    const id = await client.upload(bytes, "upload", mimetype);
    for (let time = 1; time <= 2; time++) {
      const sent = await client.send(ANA, { type, [type]: { id, ...part } });
      await stage.status(sent, "sent");
    }
    const inbox = (await stage.inbox(ANA)).filter(({ sha256 }) => sha256 === hashOf(bytes));
    assert.equal(inbox.length, 2, type);
    for (const arrived of inbox) {
      const shown = Object.fromEntries(Object.keys(arrives).map((name) => [name, arrived[name]]));
      assert.deepEqual(shown, arrives, type);
    }
    const { body } = await client.ask("GET", `/v21.0/${id}`);
    assert.deepEqual({ ...body, url: "" }, {
      messaging_product: "whatsapp",
      url: "",
      mime_type: mimetype,
      sha256: hashOf(bytes),
      file_size: bytes.length,
      id,
    });
    const content = await client.download(body.url);
    assert.deepEqual(new Uint8Array(await content.arrayBuffer()), bytes);
    assert.equal((await client.download(body.url, {})).status, 401);
  }

  // A message that waits keeps its file although the client deletes the upload.
  const bytes = bytesOf("png");
  const id = await client.upload(bytes, "cat.png", "image/png");
  await stage.api.call("POST", `/sessions/${sessionId}/queue/pause`, {});
  const waiting = await client.send(ANA, { type: "image", image: { id } });
  assert.deepEqual((await client.ask("DELETE", `/v21.0/${id}`)).body, { success: true });
  const gone = await client.ask("GET", `/v21.0/${id}`);
  assert.deepEqual([gone.status, gone.body.error.code], [404, 100]);
  await stage.api.call("POST", `/sessions/${sessionId}/queue/resume`, {});
  await stage.status(waiting, "sent");
  await stage.arrival(ANA, ({ sha256 }) => sha256 === hashOf(bytes));
});

onMedia("with its line, an upload is gone", async (stage, [LINE]) => {
  const { sessionId } = await stage.linkLine(LINE);
  const client = cloudClient(stage, LINE);
  const id = await client.upload(bytesOf("png"), "cat.png", "image/png");
  await stage.api.call("DELETE", `/sessions/${sessionId}`);
  await until(async () => (await client.ask("GET", `/v21.0/${id}`)).status === 404, "the upload to be gone");
});

onMedia("received files are found by id with the key", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  const client = cloudClient(stage, LINE);
  const bytes = bytesOf("jpg");
  const file = { file: Buffer.from(bytes).toString("base64"), mimetype: "image/jpeg", kind: "image" };
  await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, ...file });
  const { data } = await stage.event(line, ({ event }) => event === "message.received");
  const id = mediaIdOf(new URL(data.media.url).pathname.split("/").at(-1)!);
  const { body } = await client.ask("GET", `/v21.0/${id}`);
  assert.deepEqual([body.mime_type, body.sha256, body.file_size], ["image/jpeg", hashOf(bytes), bytes.length]);
  const part = await client.download(body.url, { authorization: `Bearer ${stage.apiKey}`, range: "bytes=1-3" });
  assert.deepEqual([part.status, new Uint8Array(await part.arrayBuffer())], [206, bytes.slice(1, 4)]);
  // Some clients name the official API's own host for downloads.
  assert.equal(
    await statusFor(body.url, { authorization: `Bearer ${stage.apiKey}`, host: "lookaside.fbsbx.com" }),
    200,
  );
  const { key } = (await stage.api.call("POST", "/account/keys", { name: "sends", scopes: ["send"] })).data;
  assert.equal((await client.ask("GET", `/v21.0/${id}`, undefined, { authorization: `Bearer ${key}` })).status, 403);
});

onMedia("uploads and sends by id that cannot be are refused with their codes", async (stage, [LINE, ANA]) => {
  await stage.linkLine(LINE);
  const client = cloudClient(stage, LINE);
  const pdf = await client.upload(bytesOf("pdf"), "bill.pdf", "application/pdf");
  const png = await client.upload(bytesOf("png"), "cat.png", "image/png");
  const noFile = new FormData();
  noFile.set("messaging_product", "whatsapp");
  const to = { messaging_product: "whatsapp", to: ANA };
  const media = `/v21.0/${LINE}/media`;
  const messages = `/v21.0/${LINE}/messages`;
  for (
    const [method, path, body, status, code] of [
      ["POST", media, noFile, 400, 100],
      ["POST", media, uploadForm(new Uint8Array(), "empty.txt", "text/plain"), 400, 100],
      ["POST", media, { file: "no form" }, 400, 131053],
      ["POST", "/v21.0/4999999999999/media", uploadForm(bytesOf("png"), "cat.png", "image/png"), 404, 100],
      ["GET", "/v21.0/12345678901234567890123456789012345", undefined, 404, 100],
      ["DELETE", "/v21.0/12345678901234567890123456789012345", undefined, 404, 100],
      ["POST", messages, { ...to, type: "image", image: { id: pdf } }, 400, 131053],
      ["POST", messages, { ...to, type: "sticker", sticker: { id: png } }, 400, 131053],
      ["POST", messages, { ...to, type: "audio", audio: { id: png } }, 400, 131053],
      ["POST", messages, { ...to, type: "image", image: { id: "123" } }, 400, 131053],
      ["POST", messages, { ...to, type: "image", image: { id: png, link: "https://a.example/b.png" } }, 400, 100],
      ["POST", messages, { ...to, type: "image", image: { link: "ftp://a.example/b.png" } }, 400, 100],
      ["POST", messages, { ...to, type: "audio", audio: { id: png, caption: "no" } }, 400, 100],
    ] as const
  ) {
    const refused = await client.ask(method, path, body);
    assert.deepEqual(
      [refused.status, refused.body.error?.code],
      [status, code],
      JSON.stringify([path, body, refused.body]),
    );
  }
});

/** Asks with headers that `fetch` would not send. */
function statusFor(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { headers }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    }).on("error", reject);
  });
}
