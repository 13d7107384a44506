/**
 * Files that are broken before they arrive, by every door: refused at once, or failed with a reason if they have to be
 * fetched first. None costs quota, stays on disk, or reaches a phone.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createServer } from "node:http";
import { listenOn } from "../../src/base/listening.ts";
import type { Json } from "../../src/cli/client.ts";
import { accepted, answerOf, type ApiAnswer, post, refused } from "../support/api_calls.ts";
import { noFileLeft } from "../support/media_folder.ts";
import { sampleFile } from "../support/sample_files.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

const LINE = "4915561000021";
const CUSTOMER = "4917561000021";

const LOGIN = Buffer.from("<!doctype html><title>Sign in</title>");
const VORBIS = Buffer.from(`OggS\0\x02${"\0".repeat(20)}\x01\x1e\x01vorbis`, "latin1");
const LATE = Buffer.concat([Buffer.alloc(1020, " "), sampleFile("pdf")]);

/** What software makes of a file's base64 on its way; each is of a file that would be taken. */
const BROKEN_TEXTS: Readonly<Record<string, (base64: string) => string>> = {
  "a + that became a blank": (base64) => `${base64.slice(0, 8)} ${base64.slice(9)}`,
  "the last + that became a blank": (base64) => base64.replace(/.=*$/, " "),
  "all + that became blanks": (base64) => `${base64.slice(0, 8)}    ${base64.slice(12)}`,
  "cut off": (base64) => base64.slice(0, 9),
  "cut off behind a prefix": (base64) => `data:application/pdf;base64,${base64.slice(0, 10)}`,
  "in the alphabet of URLs": (base64) => `${base64.slice(0, 8)}-_-_`,
  "two in one": (base64) => `${base64.slice(0, 8)}QQ==${base64}`,
  "the bytes themselves": () => "%PDF-1.4 1 0 obj",
  "an object's name": () => "[object Object]",
  "nothing": () => "",
};

/** Doors that take base64, each with a file that suits it. */
const TEXT_DOORS: Readonly<Record<string, (stage: Stage, broken: (base64: string) => string) => Promise<ApiAnswer>>> = {
  document: (stage, broken) =>
    json(stage, "/messages/send/document", { to: CUSTOMER, file: broken(base64("pdf")), filename: "a.pdf" }),
  pdf: (stage, broken) => json(stage, "/message/send/pdf", { number: CUSTOMER, file: broken(base64("pdf")) }),
  voice: (stage, broken) => json(stage, "/messages/send/voice", { to: CUSTOMER, file: broken(base64("ogg")) }),
  sticker: (stage, broken) => json(stage, "/messages/send/sticker", { to: CUSTOMER, file: broken(base64("webp")) }),
  status: (stage, broken) =>
    json(stage, "/messages/send/status", { audience: [CUSTOMER], file: broken(base64("png")), filename: "a.png" }),
  form: (stage, broken) =>
    form(stage, { filename: "a.pdf", head: "Content-Transfer-Encoding: base64", content: broken(base64("pdf")) }),
};

/** Words that a workflow sends in place of a file and that are base64, and files that are others. */
const NO_PDFS: Readonly<Record<string, Buffer>> = {
  ...Object.fromEntries(["null", "true", "data", "invoice"].map((word) => [word, Buffer.from(word, "base64")])),
  "a page to sign in": LOGIN,
  "a picture": sampleFile("png"),
  "a PDF that begins too late": LATE,
};

const PDF_DOORS: Readonly<Record<string, (stage: Stage, content: Buffer) => Promise<ApiAnswer>>> = {
  "document, by name": (stage, content) =>
    json(stage, "/messages/send/document", { to: CUSTOMER, file: content.toString("base64"), filename: "a.PDF" }),
  "document, by prefix": (stage, content) => {
    const file = `data:application/pdf;base64,${content.toString("base64")}`;
    return json(stage, "/messages/send/document", { to: CUSTOMER, file, filename: "Invoice 12.2026" });
  },
  pdf: (stage, content) =>
    json(stage, "/message/send/pdf", { number: CUSTOMER, file: content.toString("base64"), filename: "a.png" }),
  "form, by name": (stage, content) => form(stage, { filename: "a.pdf", head: "", content }),
  "form, by type": (stage, content) => form(stage, { filename: "a", head: "Content-Type: application/pdf", content }),
  "form, in base64": (stage, content) => {
    const head = "Content-Transfer-Encoding: base64";
    return form(stage, { filename: "a.pdf", head, content: content.toString("base64") });
  },
  "form, quoted-printable": (stage, content) => {
    const quoted = [...content].map((byte) => `=${byte.toString(16).padStart(2, "0")}`).join("");
    return form(stage, { filename: "a.pdf", head: "Content-Transfer-Encoding: quoted-printable", content: quoted });
  },
};

/** By address: the send, and what the server answers. */
const BY_ADDRESS: readonly [kind: string, fields: Json, file: { path: string; type: string; content: Buffer }][] = [
  ["document", {}, { path: "a.pdf", type: "text/html", content: LOGIN }],
  ["document", { filename: "invoice.pdf" }, { path: "download", type: "text/html", content: LOGIN }],
  ["document", {}, { path: "download", type: "application/pdf; charset=binary", content: LOGIN }],
  ["document", {}, { path: "b.pdf", type: "application/pdf", content: LATE }],
  ["voice", {}, { path: "a.ogg", type: "audio/ogg", content: VORBIS }],
  ["voice", {}, { path: "a.mp3", type: "audio/mpeg", content: sampleFile("mp3") }],
  ["voice", {}, { path: "b.ogg", type: "text/html", content: LOGIN }],
  ["sticker", {}, { path: "a.png", type: "image/png", content: sampleFile("png") }],
  ["sticker", {}, { path: "a.webp", type: "text/html", content: LOGIN }],
  ["status", { to: undefined, audience: [CUSTOMER] }, {
    path: "c.pdf",
    type: "application/pdf",
    content: sampleFile("pdf"),
  }],
];

Deno.test("a broken file is refused at every door, and reaches nobody", (t) =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(CUSTOMER);
    const { sessionId } = await stage.linkLine(LINE);

    for (const [door, send] of Object.entries(TEXT_DOORS)) {
      await t.step(`${door}: base64 that lost something`, async () => {
        for (const [how, broken] of Object.entries(BROKEN_TEXTS)) {
          const { body } = await refused(send(stage, broken), 400, "validation_failed");
          assert.deepEqual(body.errors.map(({ path }: Json) => path), ["file"], how);
        }
      });
    }

    for (const [door, send] of Object.entries(PDF_DOORS)) {
      await t.step(`${door}: what is no PDF`, async () => {
        for (const [what, content] of Object.entries(NO_PDFS)) {
          const { body } = await refused(send(stage, content), 400, "validation_failed");
          assert.deepEqual(body.errors, [{ path: "file", message: "is not a PDF" }], what);
        }
      });
    }

    await t.step("voice notes and stickers of another format", async () => {
      const rows = [["voice", VORBIS], ["voice", sampleFile("mp3")], ["voice", LOGIN], ["sticker", sampleFile("png")]];
      for (const [kind, content] of [...rows, ["sticker", LOGIN]] as [string, Buffer][]) {
        const file = { to: CUSTOMER, file: content.toString("base64") };
        const { body } = await refused(json(stage, `/messages/send/${kind}`, file), 400, "validation_failed");
        assert.match(body.errors[0].message, /Opus|WebP/);
      }
    });

    assert.deepEqual((await stage.api.call("GET", "/account")).data.used, { daily: 0, monthly: 0 });
    assert.deepEqual((await stage.api.call("GET", "/messages/history")).data, []);

    await t.step("by address, also in a bulk: the message fails with the reason", async () => {
      const site = createServer(({ url }, answer) => {
        const { type, content } = BY_ADDRESS[Number(url!.split("/")[1])]![2];
        answer.writeHead(200, { "content-type": type }).end(content);
      });
      try {
        const base = `http://127.0.0.1:${await listenOn(site)}`;
        const addressOf = (i: number) => `${base}/${i}/${BY_ADDRESS[i]![2].path}`;
        for (const [i, [kind, fields]] of BY_ADDRESS.entries()) {
          const request = { to: CUSTOMER, fileUrl: addressOf(i), ...fields };
          await accepted(json(stage, `/messages/send/${kind}`, request));
        }
        const messages = [{ to: CUSTOMER, fileUrl: addressOf(0) }, { to: CUSTOMER, fileUrl: addressOf(2) }];
        await accepted(json(stage, "/messages/send/bulk", { sessionId, messages }));
        const last = await accepted(json(stage, "/messages/send/text", { to: CUSTOMER, text: "all is well" }));
        await stage.status(last.messageId, "sent");
        const { data } = await stage.api.call("GET", "/messages/history?limit=100&status=failed");
        assert.deepEqual(
          data.map(({ error }: Json) => error.code),
          Array(BY_ADDRESS.length + messages.length).fill("file_unsuitable"),
        );
        for (const { error } of data) assert.match(error.message, /^The file (is not a PDF|is an Ogg|must be)/);
      } finally {
        site.closeAllConnections();
        site.close();
      }
    });

    assert.deepEqual((await stage.inbox(CUSTOMER)).map(({ text }: Json) => text), ["all is well"]);
    await noFileLeft(stage);
  }));

function base64(extension: string): string {
  return sampleFile(extension).toString("base64");
}

function json(stage: Stage, path: string, body: Json): Promise<ApiAnswer> {
  return post(stage, path, { json: body });
}

/** Posts a form as a mail program might write it. */
function form(
  stage: Stage,
  { filename, head, content }: { filename: string; head: string; content: string | Buffer },
): Promise<ApiAnswer> {
  const headers = { "content-type": "multipart/form-data; boundary=B" };
  const disposition = `Content-Disposition: form-data; name="file"; filename="${filename}"`;
  const body = Buffer.concat([
    Buffer.from(`--B\r\nContent-Disposition: form-data; name="to"\r\n\r\n${CUSTOMER}\r\n`),
    Buffer.from(`--B\r\n${disposition}\r\n${head}${head && "\r\n"}\r\n`),
    Buffer.from(content),
    Buffer.from("\r\n--B--\r\n"),
  ]);
  return answerOf(stage.request("POST", "/messages/send/file", { headers, body }));
}
