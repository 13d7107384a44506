/** Files in every kind and by every way in, to people and groups: phones say in which form each arrived. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { listenOn } from "../../src/base/listening.ts";
import type { Json } from "../../src/cli/client.ts";
import { accepted, answerOf, post } from "../support/api_calls.ts";
import { arrivals } from "../support/arrivals.ts";
import { noFileLeft } from "../support/media_folder.ts";
import { IMAGE_SIZE, PAGELESS_PDF, sampleFile } from "../support/sample_files.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

type Kind = "image" | "video" | "audio" | "document";

/** The specification's table, and what has no place in it. */
// deno-fmt-ignore
const NAMES: readonly [filename: string, kind: Kind, mimetype: string][] = [
  ["picture.png", "image", "image/png"], ["picture.jpg", "image", "image/jpeg"], ["picture.jpeg", "image", "image/jpeg"],
  ["picture.gif", "image", "image/gif"], ["picture.webp", "image", "image/webp"],
  ["clip.mp4", "video", "video/mp4"], ["clip.3gp", "video", "video/3gpp"], ["clip.mov", "video", "video/quicktime"],
  ["song.mp3", "audio", "audio/mpeg"], ["voice.ogg", "audio", "audio/ogg; codecs=opus"],
  ["a.pdf", "document", "application/pdf"],
  ["a.doc", "document", "application/msword"],
  ["a.docx", "document", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
  ["a.xls", "document", "application/vnd.ms-excel"],
  ["a.xlsx", "document", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
  ["a.ppt", "document", "application/vnd.ms-powerpoint"],
  ["a.pptx", "document", "application/vnd.openxmlformats-officedocument.presentationml.presentation"],
  ["a.odt", "document", "application/vnd.oasis.opendocument.text"],
  ["a.ods", "document", "application/vnd.oasis.opendocument.spreadsheet"],
  ["a.odp", "document", "application/vnd.oasis.opendocument.presentation"],
  ["a.rtf", "document", "application/rtf"], ["a.txt", "document", "text/plain"], ["a.csv", "document", "text/csv"],
  ["a.xml", "document", "application/xml"], ["a.json", "document", "application/json"],
  ["a.html", "document", "text/html"], ["a.zip", "document", "application/zip"],
  ["a.rar", "document", "application/vnd.rar"], ["a.7z", "document", "application/x-7z-compressed"],
  ["drawing.dwg", "document", "application/octet-stream"], ["no extension", "document", "application/octet-stream"],
  ["PICTURE.PNG", "image", "image/png"], ["Rechnung März 📄.PDF", "document", "application/pdf"],
  ["backup.tar.gz", "document", "application/octet-stream"], ["picture.png.exe", "document", "application/octet-stream"],
  ["v1.2.final.jpg", "image", "image/jpeg"], ["trailing.", "document", "application/octet-stream"],
];

/** What is sent, and what a phone has to find. */
interface Shipment {
  filename: string;
  content: Buffer;
  caption: string | null;
  kind: Kind;
  mimetype: string;
}

const SHIPMENTS: readonly Shipment[] = NAMES.map(([filename, kind, mimetype]) => ({
  filename,
  content: sampleFile(/\.([^.]+)$/.exec(filename)?.[1]?.toLowerCase() ?? ""),
  caption: `caption of ${filename}`,
  kind,
  mimetype,
}));

function shipmentOf(filename: string): Shipment {
  return SHIPMENTS.find((shipment) => shipment.filename === filename)!;
}

function expected({ filename, content, caption, kind, mimetype }: Shipment) {
  return {
    type: `${kind}Message`,
    // A sound has no place for either, a picture none for its name.
    caption: kind === "audio" ? null : caption,
    filename: kind === "document" ? filename : null,
    mimetype,
    sha256: sha256(content),
    size: content.length,
    voiceNote: mimetype.startsWith("audio/ogg"),
  };
}

function found({ type, caption, filename, mimetype, sha256, size, voiceNote }: Json) {
  return { type, caption, filename, mimetype, sha256, size, voiceNote };
}

function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

const LINE = "4915552000001";
const CUSTOMERS = {
  document: "4917552000001",
  form: "4917552000002",
  url: "4917552000003",
  pdf: "4917552000004",
  group: "4917552000005",
  other: "4917552000006",
};

Deno.test("files arrive in the kind of their extension, whichever way they come in", (t) =>
  withStage(openStage, async (stage) => {
    await using files = await serveFiles();
    for (const number of Object.values(CUSTOMERS)) await stage.addPhone(number);
    const line = await stage.linkLine(LINE);

    await t.step("as base64, with and without a data: prefix", async () => {
      for (const [i, shipment] of SHIPMENTS.entries()) {
        const prefix = i % 2 ? `data:${shipment.mimetype};base64,` : "";
        await accepted(postDocument(stage, CUSTOMERS.document, shipment, prefix));
      }
      await assertArrived(stage, CUSTOMERS.document, SHIPMENTS);
    });

    await t.step("by multipart upload, the caption before the file or after it", async () => {
      for (const [i, shipment] of SHIPMENTS.entries()) {
        await accepted(postForm(stage, CUSTOMERS.form, shipment, i % 2 ? "after" : "before"));
      }
      await assertArrived(stage, CUSTOMERS.form, SHIPMENTS);
    });

    await t.step("by address, in one bulk", async () => {
      const messages = SHIPMENTS.map(({ filename, content, caption }) => {
        return { to: CUSTOMERS.url, fileUrl: files.offer(filename, content), caption };
      });
      const answer = await stage.api.call("POST", "/messages/send/bulk", { sessionId: line.sessionId, messages });
      assert.equal(answer.total, SHIPMENTS.length);
      await assertArrived(stage, CUSTOMERS.url, SHIPMENTS);
    });

    await t.step("by the endpoint for invoices, always as a PDF; with a Bearer key too", async () => {
      const invoices = [sampleFile("pdf"), PAGELESS_PDF].map((content, i): Shipment => ({
        filename: `invoice ${i}.pdf`,
        content,
        caption: `Your invoice ${i}`,
        kind: "document",
        mimetype: "application/pdf",
      }));
      for (const [i, { filename, content, caption }] of invoices.entries()) {
        const form: Record<string, string> = i === 0
          ? {}
          : { "x-api-key": "", authorization: `Bearer ${stage.apiKey}` };
        const json = { file: content.toString("base64"), number: CUSTOMERS.pdf, message: caption, filename };
        await accepted(post(stage, "/message/send/pdf", { json, headers: form }));
      }
      await assertArrived(stage, CUSTOMERS.pdf, invoices);
    });

    await t.step("to a group: text, file, document, PDF and bulk", async () => {
      const participants = [LINE, CUSTOMERS.group, CUSTOMERS.other];
      const { id: group } = await stage.control.call("POST", "/groups", { subject: "Customers", participants });
      const [file, document, byUrl] = [shipmentOf("picture.png"), shipmentOf("a.csv"), shipmentOf("clip.mp4")];
      await accepted(post(stage, "/messages/send/text", { json: { to: group, text: "to the whole group" } }));
      await accepted(postForm(stage, group, file, "before"));
      await accepted(postDocument(stage, group, document, ""));
      const pdf = { file: PAGELESS_PDF.toString("base64"), number: group, filename: "group.pdf" };
      await accepted(post(stage, "/message/send/pdf", { json: pdf }));
      const fileUrl = files.offer(byUrl.filename, byUrl.content);
      const messages = [{ to: group, fileUrl, caption: byUrl.caption }, { to: group, text: "and a text in a bulk" }];
      await accepted(post(stage, "/messages/send/bulk", { json: { sessionId: line.sessionId, messages } }));

      for (const member of [CUSTOMERS.group, CUSTOMERS.other]) {
        const inbox = await arrivals(stage, member, { count: 6 });
        assert.deepEqual(
          inbox.map(({ chat, from }) => ({ chat, from })),
          Array(6).fill({ chat: group, from: `${LINE}@s.whatsapp.net` }),
        );
        assert.deepEqual(inbox.map(({ text }) => text).filter(Boolean), ["to the whole group", "and a text in a bulk"]);
        const inGroup = [file, document, byUrl].map(expected);
        assert.deepEqual([1, 2, 4].map((i) => found(inbox[i])), inGroup);
        assert.equal(inbox[3].sha256, sha256(PAGELESS_PDF));
      }
    });

    await t.step("images say their size and bring a preview; one that is corrupt goes all the same", async () => {
      const inbox = await stage.inbox(CUSTOMERS.document);
      for (const { imageSize, type } of inbox) assert.deepEqual(imageSize, type === "imageMessage" ? IMAGE_SIZE : null);
      const previews = inbox.filter(({ hasPreview }) => hasPreview).map(({ mimetype }) => mimetype);
      assert.deepEqual([...new Set(previews)].sort(), ["image/jpeg", "image/png"]);

      for (const [i, filename] of ["broken.png", "broken.jpg", "broken.webp", "broken.mp4", "broken.mp3"].entries()) {
        const content = Buffer.concat([sampleFile(filename.slice(7)).subarray(0, 30), Buffer.alloc(200, i)]);
        const shipment: Shipment = { filename, content, caption: null, kind: "image", mimetype: "" };
        await accepted(postDocument(stage, CUSTOMERS.pdf, shipment, ""));
        const arrived = await stage.arrival(CUSTOMERS.pdf, (message) => message.sha256 === sha256(content));
        assert.equal(arrived.mediaError, null);
      }
    });

    await t.step("nothing of a file stays on the gateway's disk when its message has ended", async () => {
      await noFileLeft(stage);
    });
  }));

function postDocument(stage: Stage, to: string, { filename, content, caption }: Shipment, prefix: string) {
  const file = prefix + content.toString("base64");
  const json = { to, file, filename, ...(caption === null ? {} : { caption }) };
  return post(stage, "/messages/send/document", { json });
}

function postForm(stage: Stage, to: string, { filename, content, caption }: Shipment, place: "before" | "after") {
  const form = new FormData();
  stage.secrets.read({ caption });
  form.set("to", to);
  if (place === "before") form.set("caption", caption ?? "");
  form.set("file", new File([Uint8Array.from(content)], filename));
  if (place === "after") form.set("caption", caption ?? "");
  return answerOf(stage.request("POST", "/messages/send/file", { body: form }));
}

async function assertArrived(stage: Stage, number: string, shipments: readonly Shipment[]): Promise<void> {
  const inbox = await arrivals(stage, number, { count: shipments.length });
  assert.deepEqual(inbox.map(found), shipments.map(expected));
}

/** A web server that knows no types, only names. */
async function serveFiles() {
  const offered = new Map<string, Buffer>();
  const server = createServer((request, response) => {
    const content = offered.get(request.url ?? "");
    response.writeHead(content ? 200 : 404, { "content-type": "application/octet-stream" });
    response.end(content);
  });
  const base = `http://127.0.0.1:${await listenOn(server)}`;
  return {
    offer(filename: string, content: Buffer): string {
      const path = `/${encodeURIComponent(filename)}`;
      offered.set(path, content);
      return base + path;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
