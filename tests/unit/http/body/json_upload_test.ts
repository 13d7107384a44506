import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "@hono/zod-openapi";
import { Problem } from "../../../../src/errors.ts";
import { readJsonUpload } from "../../../../src/http/body/json_upload.ts";
import { withFairWrites } from "../../../../src/media/fair_shares.ts";
import { systemClock } from "../../../../src/runtime.ts";
import { fakeMedia } from "../../../support/fake_media.ts";

const schema = z.object({ to: z.string(), file: z.string(), filename: z.string() });
const MAX = 1000;

function requestOf(text: string, chunkSize: number): Request {
  const bytes = new TextEncoder().encode(text);
  const chunks = Array.from(
    { length: Math.ceil(bytes.length / chunkSize) },
    (_, i) => bytes.subarray(i * chunkSize, (i + 1) * chunkSize),
  );
  return new Request("http://x/", { method: "POST", body: ReadableStream.from(chunks), duplex: "half" } as RequestInit);
}

async function read(text: string, chunkSize = 7) {
  const media = fakeMedia();
  try {
    const upload = await readJsonUpload(requestOf(text, chunkSize), {
      part: "file",
      schema,
      media: withFairWrites(media, systemClock),
      accountId: "acc_1",
      maxBytes: MAX,
    });
    return { ...upload, bytes: media.files.get(upload.file!.fileId)!, left: media.files.size };
  } catch (error) {
    assert.equal(media.files.size, 0, "a file was left behind");
    throw error;
  }
}

Deno.test("the file of a JSON body is found and decoded wherever the body is cut", async () => {
  const content = "hello, this is the file ÿ";
  const base64 = Buffer.from(content).toString("base64");
  const bodies = [
    `{"to":"1","filename":"a","file":"${base64}"}`,
    `{"file":"${base64}","to":"1","filename":"a"}`,
    `{ "to" : "1" , "file" : "${base64}" , "filename" : "a" }`,
    `{"to":"1","x":{"file":"no","y":[{"file":"no"}]},"file":"${base64}","filename":"a"}`,
    `{"to":"1","x":["file","no"],"\\u0066ile":"${base64}","filename":"a"}`,
    `{"to":"file","filename":"a","note":"\\"file\\":\\"no\\"","file":"${base64.replaceAll("/", "\\/")}"}`,
    `{"to":"1","filename":"a","file":"${[...base64].map((c) => `\\u00${c.charCodeAt(0).toString(16)}`).join("")}"}`,
    `{"to":"1","filename":"a","file":"${base64.replace(/(.{4})/g, "$1\\r\\n")}"}`,
    // Not JSON, but some clients write it: raw line breaks, also beside an escape.
    `{"to":"1","filename":"a","file":"${base64.replace(/(.{4})/g, "$1\n")}"}`,
    `{"to":"1","filename":"a","file":"${base64.replace(/(.{4})/g, "$1\n\\n")}"}`,
  ];
  for (const body of bodies) {
    for (let chunkSize = 1; chunkSize <= body.length; chunkSize += chunkSize < 20 ? 1 : 17) {
      const { fields, bytes, file } = await read(body, chunkSize);
      assert.equal(Buffer.from(bytes).toString(), content, body);
      assert.equal(file!.size, bytes.length);
      assert.equal(fields.filename, "a");
    }
  }
});

Deno.test("the type of the file's prefix is told, without parameters", async () => {
  const rows: [prefix: string, mimetype: string | null][] = [
    ["", null],
    ["data:application/pdf;base64,", "application/pdf"],
    ["data:text/plain;charset=utf-8;base64,", "text/plain"],
    ["data:;base64,", ""],
  ];
  for (const [prefix, mimetype] of rows) {
    const upload = await read(`{"to":"1","filename":"a","file":"${prefix}aGVsbG8="}`);
    assert.deepEqual([upload.mimetype, upload.file!.size], [mimetype, 5]);
  }
});

Deno.test("a body that is not as it should be leaves no file behind", async () => {
  const rows: [string, string][] = [
    ["", "malformed_json"],
    ["{", "malformed_json"],
    ['{"file":"aGVsbG8=', "malformed_json"],
    ['{"file":"aGVsbG8="', "malformed_json"],
    ['{"file":"aGVsbG8="} x', "malformed_json"],
    ['{"to":"1","filename":"a","file":"aGVs\\', "malformed_json"],
    ['{"to":"1","filename":"a","file":"aGVs\\"bG8="}', "validation_failed"],
    ['{"to":"1","filename":"a","file":"aGVs\\bG8="}', "validation_failed"],
    ['{"to":"1","filename":"a","file":"aGVs\\u0441G8="}', "validation_failed"],
    ['{"to":"1","filename":"a","file":"aGVs bG8="}', "validation_failed"],
    ['{"to":"1","filename":"a"}', "validation_failed"],
    ['{"to":"1","filename":"a","file":null}', "validation_failed"],
    ['{"to":"1","filename":"a","file":["aGVsbG8="]}', "validation_failed"],
    ['{"filename":"a","file":"aGVsbG8="}', "validation_failed"],
    ['{"to":"1","filename":"a","file":"aGVsbG8=","file":"aGVsbG8="}', "validation_failed"],
    ['["file","aGVsbG8="]', "validation_failed"],
    [`{"to":"1","filename":"a","file":"${"A".repeat(2000)}"}`, "payload_too_large"],
    [`{"to":"1","filename":"${"x".repeat(1024 * 1024)}","file":"AAAA"}`, "payload_too_large"],
  ];
  for (const [body, code] of rows) {
    await assert.rejects(read(body, 1000), (error) => {
      assert.ok(error instanceof Problem, String(error));
      assert.equal(error.code, code, body.slice(0, 80));
      return true;
    });
  }
});
