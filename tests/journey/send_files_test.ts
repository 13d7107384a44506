/** Files in every kind and by every way in, to people and groups: phones say in which form each arrived. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Json, until } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { IMAGE_SIZE, PAGELESS_PDF, sampleFile } from "../support/sample_files.ts";
import { openStage, type Stage } from "../support/stage.ts";

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
const SECOND_LINE = "4915552000002";
const CUSTOMERS = {
  document: "4917552000001",
  form: "4917552000002",
  url: "4917552000003",
  pdf: "4917552000004",
  group: "4917552000005",
  other: "4917552000006",
};

Deno.test("files arrive in the kind of their extension, whichever way they come in", async (t) => {
  const stage = await openStage();
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
      const key: Record<string, string> = i === 0
        ? { "x-api-key": stage.apiKey }
        : { authorization: `Bearer ${stage.apiKey}` };
      await accepted(fetch(`${stage.gateway.baseUrl}/message/send/pdf`, {
        method: "POST",
        headers: { ...key, "content-type": "application/json" },
        body: JSON.stringify({ file: content.toString("base64"), number: CUSTOMERS.pdf, message: caption, filename }),
      }));
    }
    await assertArrived(stage, CUSTOMERS.pdf, invoices);
  });

  await t.step("to a group: text, file, document, PDF and bulk", async () => {
    const participants = [LINE, CUSTOMERS.group, CUSTOMERS.other];
    const { id: group } = await stage.control.call("POST", "/groups", { subject: "Customers", participants });
    const [file, document, byUrl] = SHIPMENTS.filter(({ filename }) =>
      ["picture.png", "a.csv", "clip.mp4"].includes(filename)
    );
    await accepted(postJson(stage, "/messages/send/text", { to: group, text: "to the whole group" }));
    await accepted(postForm(stage, group, file!, "before"));
    await accepted(postDocument(stage, group, document!, ""));
    const pdf = { file: PAGELESS_PDF.toString("base64"), number: group, filename: "group.pdf" };
    await accepted(postJson(stage, "/message/send/pdf", pdf));
    const fileUrl = files.offer(byUrl!.filename, byUrl!.content);
    const messages = [{ to: group, fileUrl, caption: byUrl!.caption }, { to: group, text: "and a text in a bulk" }];
    await accepted(postJson(stage, "/messages/send/bulk", { sessionId: line.sessionId, messages }));

    for (const member of [CUSTOMERS.group, CUSTOMERS.other]) {
      const inbox = await inboxOf(stage, member, 6);
      assert.deepEqual(
        inbox.map(({ chat, from }) => ({ chat, from })),
        inbox.map(() => ({
          chat: group,
          from: `${LINE}@s.whatsapp.net`,
        })),
      );
      assert.deepEqual(inbox.map(({ text }) => text).filter(Boolean), ["to the whole group", "and a text in a bulk"]);
      const inGroup = [file!, document!, byUrl!].map(expected);
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
    assert.deepEqual(await filesUnder(`${stage.env.PALOMA_DATA_DIR}/media`), []);
  });

  await stage.end(SHIPMENTS.map(({ caption }) => caption!));
});

Deno.test("texts and recipients of every form arrive, and whoever has no account is told of", async (t) => {
  const stage = await openStage();
  const [customer, other] = [CUSTOMERS.document, CUSTOMERS.other];
  await stage.addPhone(customer);
  await stage.addPhone(other);
  const first = await stage.linkLine(LINE);
  const second = await stage.linkLine(SECOND_LINE);

  await t.step("a number, its JID and its hidden LID reach the same phone", async () => {
    const { lid } = await stage.control.call("GET", `/phones/${customer}`);
    const forms = [customer, `${customer}@s.whatsapp.net`, lid.includes("@") ? lid : `${lid}@lid`];
    for (const to of forms) await accepted(postJson(stage, "/messages/send/text", { to, text: `hello to ${to}` }));
    const inbox = await inboxOf(stage, customer, 3);
    assert.deepEqual(inbox.map(({ text }) => text), forms.map((to) => `hello to ${to}`));
  });

  await t.step("65,536 characters arrive, emoji and lines included; one more is refused", async () => {
    const line = "Grüße 👋🏽 مرحبا 你好 👨‍👩‍👧‍👦\n";
    const text = [...line.repeat(4_000)].slice(0, 65_536).join("").replace(/\s$/, "!");
    await accepted(postJson(stage, "/messages/send/text", { to: customer, text }));
    const doves = "🕊".repeat(65_536);
    await accepted(postJson(stage, "/messages/send/text", { to: customer, text: doves }));
    await stage.arrival(customer, (message) => message.text === text);
    await stage.arrival(customer, (message) => message.text === doves);
    const { status, body } = await answer(postJson(stage, "/messages/send/text", { to: customer, text: `${doves}x` }));
    assert.deepEqual([status, body.code, body.errors[0].path], [400, "validation_failed", "text"]);
  });

  await t.step("a number without an account ends as failed, with a clear reason, and the next one leaves", async () => {
    const nobody = "4917559999999";
    const { messageId } = await accepted(
      postJson(stage, "/messages/send/text", { to: nobody, text: "is anybody there" }),
    );
    await stage.status(messageId, "failed");
    const { data } = await stage.api.call("GET", "/messages/history?status=failed");
    assert.deepEqual(data.map(({ messageId, to, error }: Json) => ({ messageId, to, error })), [{
      messageId,
      to: nobody,
      error: { code: "number_not_registered", message: `${nobody} has no account.` },
    }]);
    await accepted(postJson(stage, "/messages/send/text", { to: other, text: "the line goes on" }));
    await stage.arrival(other, (message) => message.text === "the line goes on");
  });

  await t.step("without a session the oldest connected line sends", async () => {
    await accepted(postJson(stage, "/messages/send/text", { to: other, text: "by the first line" }));
    await stage.api.call("POST", `/sessions/${first.sessionId}/disconnect`);
    await accepted(postJson(stage, "/messages/send/text", { to: other, text: "by the second line" }));
    const pdf = { file: PAGELESS_PDF.toString("base64"), number: other, filename: "second.pdf" };
    await accepted(postJson(stage, "/message/send/pdf", pdf));
    const inbox = (await inboxOf(stage, other, 4)).slice(-3);
    assert.deepEqual(inbox.map(({ from }) => from), [LINE, SECOND_LINE, SECOND_LINE].map((n) => `${n}@s.whatsapp.net`));
    await stage.api.call("POST", `/sessions/${second.sessionId}/disconnect`);
    const refused = await answer(postJson(stage, "/messages/send/text", { to: other, text: "by no line" }));
    assert.deepEqual([refused.status, refused.body.code], [409, "no_connected_session"]);
  });

  await stage.end(["hello to", "is anybody there", "by the first line"]);
});

function postJson(stage: Stage, path: string, body: unknown): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return stage.request("POST", path, { headers, body: JSON.stringify(body) });
}

function postDocument(stage: Stage, to: string, { filename, content, caption }: Shipment, prefix: string) {
  const file = prefix + content.toString("base64");
  return postJson(stage, "/messages/send/document", { to, file, filename, ...(caption === null ? {} : { caption }) });
}

function postForm(stage: Stage, to: string, { filename, content, caption }: Shipment, place: "before" | "after") {
  const form = new FormData();
  form.set("to", to);
  if (place === "before") form.set("caption", caption ?? "");
  form.set("file", new File([Uint8Array.from(content)], filename));
  if (place === "after") form.set("caption", caption ?? "");
  return stage.request("POST", "/messages/send/file", { body: form });
}

async function answer(request: Promise<Response>): Promise<{ status: number; body: Json }> {
  const response = await request;
  return { status: response.status, body: await response.json() };
}

async function accepted(request: Promise<Response>): Promise<Json> {
  const { status, body } = await answer(request);
  assert.equal(status, 202, JSON.stringify(body));
  return body;
}

/** The inbox once it holds this many messages; a line keeps its order, so it is in the order of sending. */
function inboxOf(stage: Stage, number: string, count: number): Promise<Json[]> {
  return until(systemClock, async () => {
    const inbox = await stage.inbox(number);
    return inbox.length >= count ? inbox : null;
  }, { what: `${count} messages at ${number}`, timeoutMs: 60_000 });
}

async function assertArrived(stage: Stage, number: string, shipments: readonly Shipment[]): Promise<void> {
  const inbox = await inboxOf(stage, number, shipments.length);
  assert.deepEqual(inbox.map(found), shipments.map(expected));
}

async function filesUnder(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    found.push(...(isDirectory ? await filesUnder(`${folder}/${name}`) : [`${folder}/${name}`]));
  }
  return found;
}

/** A web server that knows no types, only names. */
async function serveFiles() {
  const offered = new Map<string, Buffer>();
  const server = createServer((request, response) => {
    const content = offered.get(request.url ?? "");
    response.writeHead(content ? 200 : 404, { "content-type": "application/octet-stream" });
    response.end(content);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
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
