/** Files in every kind and by every way in, to people and groups: phones say in which form each arrived. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { listenOn } from "../../src/base/listening.ts";
import type { Json } from "../../src/cli/client.ts";
import { accepted, answerOf, post } from "../support/api_calls.ts";
import { arrivals } from "../support/arrivals.ts";
import { connectionsOf } from "../support/closing.ts";
import { noFileLeft } from "../support/media_folder.ts";
import { IMAGE_SIZE, PAGELESS_PDF, sampleFile } from "../support/sample_files.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

type Kind = "image" | "video" | "audio" | "document";

/** The specification's table, and what has no place in it; null where the extension tells no type. */
// deno-fmt-ignore
const NAMES: readonly [filename: string, kind: Kind, mimetype: string | null][] = [
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
  ["IMG_1042.heic", "document", "image/heic"], ["a.jfif", "document", "image/jpeg"], ["a.svg", "document", "image/svg+xml"],
  ["scan.tif", "document", "image/tiff"], ["a.bmp", "document", "image/bmp"], ["a.avif", "document", "image/avif"],
  ["a.m4v", "document", "video/x-m4v"], ["a.webm", "document", "video/webm"], ["a.opus", "document", "audio/ogg"],
  ["a.oga", "document", "audio/ogg"], ["a.m4a", "document", "audio/mp4"], ["a.aac", "document", "audio/aac"],
  ["a.wav", "document", "audio/wav"], ["a.amr", "document", "audio/amr"], ["Ana.vcf", "document", "text/vcard"],
  ["a.ics", "document", "text/calendar"], ["a.eml", "document", "message/rfc822"],
  ["a.xlsm", "document", "application/vnd.ms-excel.sheet.macroenabled.12"],
  ["a.docm", "document", "application/vnd.ms-word.document.macroenabled.12"],
  ["fattura.xml.p7m", "document", "application/pkcs7-mime"],
  ["a.apk", "document", "application/vnd.android.package-archive"], ["backup.tar.gz", "document", "application/gzip"],
  ["drawing.dwg", "document", null], ["no extension", "document", null], ["Invoice 12.2026", "document", null],
  ["picture.png.exe", "document", null], ["trailing.", "document", null],
  ["PICTURE.PNG", "image", "image/png"], ["Rechnung März 📄.PDF", "document", "application/pdf"],
  ["v1.2.final.jpg", "image", "image/jpeg"],
];

/** What is sent, and what a phone has to find. */
interface Shipment {
  filename: string;
  content: Buffer;
  caption: string | null;
  kind: Kind;
  mimetype: string | null;
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

/** Those that nobody reads before they leave, which costs a process each. */
const DOCUMENTS = SHIPMENTS.filter(({ kind, mimetype }) => kind === "document" && mimetype !== "application/pdf");

/** What a client says of each file, truly or not: it counts where the extension tells nothing. */
const SAID = "application/x-odd";
const UNKNOWN = "application/octet-stream";

/** `said` is the type that the client gave. */
function expected({ filename, content, caption, kind, mimetype }: Shipment, said: string) {
  return {
    type: `${kind}Message`,
    // A sound has no place for either, a picture none for its name.
    caption: kind === "audio" ? null : caption,
    filename: kind === "document" ? filename : null,
    mimetype: mimetype ?? said,
    sha256: sha256(content),
    size: content.length,
    voiceNote: filename === "voice.ogg",
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
  silent: "4917552000007",
};

Deno.test("files arrive in the kind of their extension, whichever way they come in", (t) =>
  withStage(openStage, async (stage) => {
    await using files = await serveFiles();
    for (const number of Object.values(CUSTOMERS)) await stage.addPhone(number);
    const line = await stage.linkLine(LINE);

    await t.step("as base64, behind a data: prefix", async () => {
      for (const shipment of SHIPMENTS) {
        await accepted(postDocument(stage, CUSTOMERS.document, shipment, `data:${SAID};base64,`));
      }
      await assertArrived(stage, CUSTOMERS.document, { shipments: SHIPMENTS, said: SAID });
    });

    await t.step("by multipart upload, the caption before the file or after it", async () => {
      for (const [i, shipment] of SHIPMENTS.entries()) {
        await accepted(postForm(stage, CUSTOMERS.form, shipment, { place: i % 2 ? "after" : "before", type: SAID }));
      }
      await assertArrived(stage, CUSTOMERS.form, { shipments: SHIPMENTS, said: SAID });
    });

    await t.step("by address, in one bulk", async () => {
      const messages = SHIPMENTS.map(({ filename, content, caption }) => {
        return { to: CUSTOMERS.url, fileUrl: files.offer(filename, { content, type: SAID }), caption };
      });
      const answer = await stage.api.call("POST", "/messages/send/bulk", { sessionId: line.sessionId, messages });
      assert.equal(answer.total, SHIPMENTS.length);
      await assertArrived(stage, CUSTOMERS.url, { shipments: SHIPMENTS, said: SAID });
    });

    await t.step("by each of these ways, when nobody says a type", async () => {
      for (const shipment of DOCUMENTS) {
        const { filename, content, caption } = shipment;
        await accepted(postDocument(stage, CUSTOMERS.silent, shipment, ""));
        await accepted(postForm(stage, CUSTOMERS.silent, shipment, { place: "before", type: "" }));
        const fileUrl = files.offer(filename, { content, type: UNKNOWN });
        await accepted(post(stage, "/messages/send/document", { json: { to: CUSTOMERS.silent, fileUrl, caption } }));
      }
      const thrice = DOCUMENTS.flatMap((shipment) => [shipment, shipment, shipment]);
      await assertArrived(stage, CUSTOMERS.silent, { shipments: thrice, said: UNKNOWN });
    });

    await t.step("Ogg with anything but Opus is a sound, and no voice note", async () => {
      const content = Buffer.from("OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\x1e\x01vorbis", "latin1");
      const shipment: Shipment = { filename: "song.ogg", content, caption: null, kind: "audio", mimetype: "audio/ogg" };
      await accepted(postDocument(stage, CUSTOMERS.other, shipment, ""));
      const fileUrl = files.offer("song.ogg", { content, type: "audio/ogg" });
      await accepted(post(stage, "/messages/send/document", { json: { to: CUSTOMERS.other, fileUrl } }));
      await assertArrived(stage, CUSTOMERS.other, { shipments: [shipment, shipment], said: UNKNOWN });
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
      await assertArrived(stage, CUSTOMERS.pdf, { shipments: invoices, said: UNKNOWN });
    });

    await t.step("to a group: text, file, document, PDF and bulk", async () => {
      const participants = [LINE, CUSTOMERS.group, CUSTOMERS.other];
      const { id: group } = await stage.control.call("POST", "/groups", { subject: "Customers", participants });
      const [file, document, byUrl] = [shipmentOf("picture.png"), shipmentOf("a.csv"), shipmentOf("clip.mp4")];
      await accepted(post(stage, "/messages/send/text", { json: { to: group, text: "to the whole group" } }));
      await accepted(postForm(stage, group, file, { place: "before", type: "" }));
      await accepted(postDocument(stage, group, document, ""));
      const pdf = { file: PAGELESS_PDF.toString("base64"), number: group, filename: "group.pdf" };
      await accepted(post(stage, "/message/send/pdf", { json: pdf }));
      const fileUrl = files.offer(byUrl.filename, { content: byUrl.content, type: UNKNOWN });
      const messages = [{ to: group, fileUrl, caption: byUrl.caption }, { to: group, text: "and a text in a bulk" }];
      await accepted(post(stage, "/messages/send/bulk", { json: { sessionId: line.sessionId, messages } }));

      for (const [member, before] of [[CUSTOMERS.group, 0], [CUSTOMERS.other, 2]] as const) {
        const inbox = (await arrivals(stage, member, { count: before + 6 })).slice(before);
        assert.deepEqual(
          inbox.map(({ chat, from }) => ({ chat, from })),
          Array(6).fill({ chat: group, from: `${LINE}@s.whatsapp.net` }),
        );
        assert.deepEqual(inbox.map(({ text }) => text).filter(Boolean), ["to the whole group", "and a text in a bulk"]);
        const inGroup = [file, document, byUrl].map((shipment) => expected(shipment, UNKNOWN));
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

function postForm(
  stage: Stage,
  to: string,
  { filename, content, caption }: Shipment,
  { place, type }: { place: "before" | "after"; type: string },
) {
  const form = new FormData();
  stage.secrets.read({ caption });
  form.set("to", to);
  if (place === "before") form.set("caption", caption ?? "");
  form.set("file", new File([Uint8Array.from(content)], filename, { type }));
  if (place === "after") form.set("caption", caption ?? "");
  return answerOf(stage.request("POST", "/messages/send/file", { body: form }));
}

async function assertArrived(
  stage: Stage,
  number: string,
  { shipments, said }: { shipments: readonly Shipment[]; said: string },
): Promise<void> {
  const inbox = await arrivals(stage, number, { count: shipments.length });
  assert.deepEqual(inbox.map(found), shipments.map((shipment) => expected(shipment, said)));
}

/** A web server that gives files under their names, with the types that it is told. */
async function serveFiles() {
  const offered = new Map<string, { content: Buffer; type: string }>();
  const server = createServer((request, response) => {
    const file = offered.get(request.url ?? "");
    response.writeHead(file ? 200 : 404, { "content-type": file?.type ?? UNKNOWN });
    response.end(file?.content);
  });
  const { close } = connectionsOf(server);
  const base = `http://127.0.0.1:${await listenOn(server)}`;
  return {
    offer(filename: string, file: { content: Buffer; type: string }): string {
      const path = `/${offered.size}/${encodeURIComponent(filename)}`;
      offered.set(path, file);
      return base + path;
    },
    [Symbol.asyncDispose]: close,
  };
}
