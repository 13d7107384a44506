import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { OutgoingContent } from "../../../src/message/content.ts";
import { DiskShares } from "../../../src/media/fair_shares.ts";
import type { FileContent } from "../../../src/message/kinds/file.ts";
import type { StoredFile } from "../../../src/media/store.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import { expectAnswer, problem, wrong } from "../../support/api_table.ts";
import { type ApiWorld, type CallOptions, withApi } from "../../support/api_world.ts";
import { until } from "../../support/until.ts";

const TO = "34600111222";

/** Sends while the network does not answer, so that the message keeps its file. */
async function accepted(world: ApiWorld, path: string, options: CallOptions): Promise<OutgoingContent> {
  await world.linkedSession();
  world.network.outcome = () => null;
  const text = await expectAnswer(await world.call("POST", path, options), { status: 202 });
  return (await world.message(JSON.parse(text).messageId))!.content;
}

async function file(world: ApiWorld, content: OutgoingContent): Promise<Uint8Array> {
  return await Deno.readFile(world.media.path((content as FileContent<StoredFile>).file.fileId));
}

Deno.test("the kind of a file is chosen from its extension, as the specification's table says", async (t) => {
  const table: [extensions: string, kind: string, mimetype: RegExp][] = [
    ["png jpg jpeg gif webp PNG", "image", /^image\//],
    ["mp4 3gp mov", "video", /^video\//],
    ["mp3 ogg", "audio", /^audio\//],
    [
      "pdf doc docx xls xlsx ppt pptx odt ods odp rtf txt csv xml json html zip rar 7z",
      "document",
      /^(application|text)\//,
    ],
    ["exe weird __proto__", "document", /^application\/octet-stream$/],
    ["svg bmp avi wav tar.gz", "document", /^(image\/(svg\+xml|bmp)|video\/x-msvideo|audio\/wav|application\/gzip)$/],
  ];
  await withApi(async (world) => {
    const session = await world.linkedSession();
    await world.call("POST", `/v1/sessions/${session}/disconnect`);
    for (const [extensions, kind, mimetype] of table) {
      for (const extension of extensions.split(" ")) {
        await t.step(extension, async () => {
          const filename = `My file.${extension}`;
          const json = { sessionId: session, to: TO, file: btoa("%PDF-1.4"), filename, caption: "Look" };
          const answer = await world.call("POST", "/v1/messages/send/document", { json });
          const { messageId } = JSON.parse(await expectAnswer(answer, { status: 202 }));
          const content = (await world.message(messageId))!.content as FileContent;
          assert.equal(content.kind, kind);
          assert.match(content.mimetype, mimetype);
          assert.equal(content.filename, filename);
          assert.equal(content.caption, "Look");
        });
      }
    }
  });
});

Deno.test("all of a group are mentioned by the word alone too, which the document does not show", () =>
  withApi(async (world) => {
    await world.linkedSession();
    for (const mentions of ["all", ["all"]]) {
      const json = { to: "120363025246125486@g.us", text: "hi", mentions };
      const answer = await expectAnswer(await world.call("POST", "/v1/messages/send/text", { json }), { status: 202 });
      assert.equal((await world.message(JSON.parse(answer).messageId))!.manner!.mentions, "all");
    }
  }));

Deno.test("a name without an extension is a document", () =>
  withApi(async (world) => {
    const content = await accepted(world, "/v1/messages/send/document", {
      json: { to: TO, file: btoa("x"), filename: "LICENSE" },
    });
    assert.equal(content.kind, "document");
  }));

Deno.test("a document lies on disk with its bytes before the 202", () =>
  withApi(async (world) => {
    const bytes = world.runtime.random.bytes(200_000);
    const content = await accepted(world, "/v1/messages/send/document", {
      json: { to: TO, file: Buffer.from(bytes).toString("base64"), filename: "a.bin" },
    }) as FileContent<StoredFile>;
    assert.deepEqual(await file(world, content), bytes);
    assert.equal(content.file.size, bytes.length);
    assert.equal(content.file.sha256, createHash("sha256").update(bytes).digest("hex"));
  }));

Deno.test("a PDF is a document of that type whatever its name, which ends in .pdf", () =>
  withApi(async (world) => {
    const rows: [filename: string | null, named: string][] = [
      ["invoice.PDF", "invoice.PDF"],
      ["invoice.png", "invoice.png.pdf"],
      ["Invoice No. 12.2026", "Invoice No. 12.2026.pdf"],
      ["x".repeat(255), "x".repeat(251) + ".pdf"],
      [null, "document.pdf"],
    ];
    for (const [filename, named] of rows) {
      const content = await accepted(world, "/v1/message/send/pdf", {
        json: { number: TO, file: btoa("%PDF-1.4"), message: "Your invoice", filename },
      }) as FileContent;
      const { kind, mimetype, caption } = content;
      assert.deepEqual([kind, mimetype, content.filename, caption], [
        "document",
        "application/pdf",
        named,
        "Your invoice",
      ]);
    }
  }));

Deno.test("an uploaded file keeps its name, and a caption after it counts", () =>
  withApi(async (world) => {
    const body = new FormData();
    body.append("file", new File([new Uint8Array(100_000)], "Año nuevo – 1.PNG"));
    body.append("to", TO);
    body.append("caption", "Late 🎉");
    const content = await accepted(world, "/v1/messages/send/file", { body }) as FileContent;
    assert.deepEqual([content.kind, content.filename, content.caption], ["image", "Año nuevo – 1.PNG", "Late 🎉"]);
    assert.equal((await file(world, content)).length, 100_000);
  }));

Deno.test("the name of an upload cannot climb out of its folder", () =>
  withApi(async (world) => {
    const body = new FormData();
    body.append("to", TO);
    body.append("file", new File(["x"], "..\\..\\evil\u202egnp.exe"));
    const content = await accepted(world, "/v1/messages/send/file", { body }) as FileContent;
    assert.equal(content.filename, "evilgnp.exe");
  }));

Deno.test("35 MiB pass and a byte more does not, and no file stays", () =>
  withApi(async (world) => {
    await world.linkedSession();
    const most = 35 * 1024 * 1024;
    const send = (size: number) =>
      world.call("POST", "/v1/messages/send/document", {
        json: { to: TO, file: Buffer.alloc(size, 7).toString("base64"), filename: "a.bin" },
      });
    await expectAnswer(await send(most), { status: 202 });
    await expectAnswer(await send(most + 1), { status: 413, contains: problem("payload_too_large") });
    await until(async () => (await world.files()).length === 0, "the files to be gone");
  }));

Deno.test("an upload of more than 100 MiB is refused while it comes", () =>
  withApi(async (world) => {
    await world.linkedSession();
    const head = `--B\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n`;
    let sent = 0;
    const body = new ReadableStream({
      pull(controller) {
        controller.enqueue(sent === 0 ? new TextEncoder().encode(head) : new Uint8Array(1024 * 1024));
        sent++;
      },
    });
    const response = await world.call("POST", "/v1/messages/send/file", {
      body,
      headers: { "content-type": "multipart/form-data; boundary=B" },
    });
    await expectAnswer(response, {
      status: 413,
      contains: problem("payload_too_large"),
      headers: { connection: "close" },
    });
    assert.ok(sent > 200 && sent < 240, `${sent} MiB were read: none of the last hundred for anybody`);
    assert.deepEqual(await world.files(), []);
  }));

Deno.test("a body whose length says too much is refused, and unread when there is no end to it", () =>
  withApi(async (world) => {
    const MIB = 1024 ** 2;
    const rows: [path: string, type: string, length: number][] = [
      ["/v1/messages/send/text", "application/json", 2 * MIB],
      ["/v1/messages/send/document", "application/json", 60 * MIB],
      ["/v1/messages/send/file", "multipart/form-data; boundary=B", 110 * MIB],
      ["/v1/messages/send/bulk", "application/json", 40 * MIB],
    ];
    const refused = async (path: string, type: string, length: number) => {
      let read = 0;
      const body = new ReadableStream({
        pull(controller) {
          read += MIB;
          controller.enqueue(new Uint8Array(MIB));
          if (read >= length) controller.close();
        },
      }, { highWaterMark: 0 });
      const headers = { "content-type": type, "content-length": String(length) };
      const response = await world.call("POST", path, { body, headers });
      await expectAnswer(response, { status: 413 });
      return [read, response.headers.get("connection")];
    };
    for (const [path, type, length] of rows) {
      assert.deepEqual(await refused(path, type, length), [length, null]);
      assert.deepEqual(await refused(path, type, 1024 ** 4), [0, "close"]);
    }
    assert.deepEqual(await world.files(), []);
  }));

Deno.test("a client that breaks off leaves nothing behind", () =>
  withApi(async (world) => {
    await world.linkedSession();
    const rows: [path: string, type: string, begin: string][] = [
      ["/v1/messages/send/text", "application/json", '{"to":"3460'],
      [
        "/v1/messages/send/document",
        "application/json",
        `{"to":"${TO}","filename":"a.pdf","file":"${"A".repeat(4000)}`,
      ],
      [
        "/v1/messages/send/file",
        "multipart/form-data; boundary=B",
        `--B\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n${"x".repeat(4000)}`,
      ],
    ];
    for (const [path, type, begin] of rows) {
      let pulls = 0;
      const body = new ReadableStream({
        pull(controller) {
          if (pulls++ === 0) controller.enqueue(new TextEncoder().encode(begin));
          else controller.error(new Error("connection reset"));
        },
      });
      const response = await world.call("POST", path, { body, headers: { "content-type": type } });
      await expectAnswer(response, { status: 400 });
    }
    assert.deepEqual(await world.files(), []);
  }));

Deno.test("a bulk keeps texts and addresses of files, in order", () =>
  withApi(async (world) => {
    const session = await world.linkedSession();
    await world.call("POST", `/v1/sessions/${session}/disconnect`);
    const messages = [
      { to: TO, text: "first" },
      { to: "120363025246125486@g.us", fileUrl: "https://example.com/files/Report%202026.pdf?v=1", caption: "Read" },
      { to: TO, fileUrl: "https://example.com/download" },
    ];
    const answer = await world.call("POST", "/v1/messages/send/bulk", { json: { sessionId: session, messages } });
    const body = JSON.parse(await expectAnswer(answer, { status: 202 }));
    assert.deepEqual(body.messages.map((row: { index: number; to: string }) => [row.index, row.to]), [
      [0, TO],
      [1, "120363025246125486@g.us"],
      [2, TO],
    ]);
    const contents = await Promise.all(
      body.messages.map(async (row: { messageId: string }) => (await world.message(row.messageId))!.content),
    );
    assert.deepEqual(contents, [
      { kind: "text", text: "first" },
      {
        kind: "document",
        mimetype: "application/pdf",
        file: { url: "https://example.com/files/Report%202026.pdf?v=1" },
        filename: "Report 2026.pdf",
        caption: "Read",
      },
      {
        kind: "document",
        mimetype: "application/octet-stream",
        file: { url: "https://example.com/download" },
        filename: "download",
        caption: null,
      },
    ]);
  }));

Deno.test("ten thousand items are one 202, and a queue that can be cancelled as one", () =>
  withApi(async (world) => {
    const session = await world.linkedSession();
    await world.call("POST", `/v1/sessions/${session}/disconnect`);
    const messages = Array.from({ length: 10_000 }, (_, i) => ({ to: TO, text: `text ${i}` }));
    const answer = await world.call("POST", "/v1/messages/send/bulk", { json: { sessionId: session, messages } });
    const { bulkId, total } = JSON.parse(await expectAnswer(answer, { status: 202 }));
    assert.equal(total, 10_000);
    const queue = await (await world.call("GET", `/v1/sessions/${session}/queue?limit=2`)).json();
    assert.deepEqual(queue.data.map((row: { position: number }) => row.position), [1, 2]);
    await expectAnswer(await world.call("DELETE", `/v1/messages/${bulkId}`), {
      status: 200,
      contains: [`"bulkId":"${bulkId}","cancelled":10000`],
    });
    await expectAnswer(await world.call("DELETE", `/v1/messages/${bulkId}`), {
      status: 409,
      contains: problem("not_cancellable"),
    });
    await expectAnswer(await world.call("GET", "/v1/messages/history?status=failed"), {
      status: 200,
      contains: ['"code":"cancelled"', '"total":10000'],
    });
  }));

Deno.test("a queued message is cancelled once, a sent one never", () =>
  withApi(async (world) => {
    const session = await world.linkedSession();
    const send = async () => {
      const json = { sessionId: session, to: TO, text: "a" };
      return (await (await world.call("POST", "/v1/messages/send/text", { json })).json()).messageId as string;
    };
    const sent = await send();
    await world.runtime.clock.advance(1_000);
    await expectAnswer(await world.call("GET", `/v1/messages/${sent}/status`), {
      status: 200,
      contains: [/^\{"messageId":"msg_\w+","status":"sent","sentAt":"2026-01-15T[^"]+Z","error":null\}$/],
    });
    await expectAnswer(await world.call("DELETE", `/v1/messages/${sent}`), {
      status: 409,
      contains: problem("not_cancellable"),
    });
    await world.call("POST", `/v1/sessions/${session}/disconnect`);
    const queued = await send();
    await expectAnswer(await world.call("GET", `/v1/messages/${queued}/status`), {
      status: 200,
      contains: [/^\{"messageId":"msg_\w+","status":"queued","sentAt":null,"error":null\}$/],
    });
    await expectAnswer(await world.call("DELETE", `/v1/messages/${queued}`), {
      status: 200,
      contains: ['"status":"failed"', '"error":{"code":"cancelled"'],
    });
    await expectAnswer(await world.call("DELETE", `/v1/messages/${queued}`), { status: 409 });
    for (
      const [kind, field, json] of [
        ["text", "replyTo", { to: TO, text: "b", replyTo: queued }],
        ["reaction", "messageId", { messageId: queued, emoji: "👍" }],
        ["forward", "messageId", { to: TO, messageId: queued }],
      ] as const
    ) {
      const refusal = { status: 400, contains: wrong(field, /was not sent/) };
      await expectAnswer(await world.call("POST", `/v1/messages/send/${kind}`, { json }), refusal);
    }
  }));

Deno.test("history shows what was sent, newest first, and a day is whole", () =>
  withApi(async (world) => {
    const session = await world.linkedSession();
    for (const text of ["one", "two", "three"]) {
      await world.call("POST", "/v1/messages/send/text", { json: { to: TO, text } });
      await world.runtime.clock.advance(60_000);
    }
    const page = await (await world.call("GET", "/v1/messages/history?limit=2")).json();
    assert.deepEqual(page.pagination, { page: 1, limit: 2, total: 3 });
    const { messageId, jobId, createdAt, sentAt, ...item } = page.data[0];
    assert.match(`${messageId} ${jobId} ${createdAt} ${sentAt}`, /^msg_\w+ job_\w+ 2026-01-15T\S+ 2026-01-15T\S+$/);
    assert.deepEqual(item, {
      sessionId: session,
      to: TO,
      type: "text",
      text: "three",
      caption: null,
      filename: null,
      status: "sent",
      details: null,
      error: null,
      priority: "normal",
      tags: [],
      sendAt: null,
      deliveredAt: null,
      readAt: null,
    });
    const second = await (await world.call("GET", "/v1/messages/history?limit=2&page=2")).json();
    assert.deepEqual(second.data.map((row: { text: string }) => row.text), ["one"]);
    const days: [query: string, total: number][] = [
      ["from=2026-01-15&to=2026-01-15", 3],
      ["from=2026-01-16", 0],
      ["to=2026-01-14", 0],
      ["status=sent", 3],
      ["status=failed", 0],
    ];
    for (const [query, total] of days) {
      const { pagination } = await (await world.call("GET", `/v1/messages/history?${query}`)).json();
      assert.equal(pagination.total, total, query);
    }
  }));

Deno.test("a field of a form has bounds, in number and in size", () =>
  withApi(async (world) => {
    const many = new FormData();
    for (let i = 0; i < 30; i++) many.append(`field${i}`, "x");
    const long = new FormData();
    long.append("caption", "x".repeat(300_000));
    const send = (body: FormData) => world.call("POST", "/v1/messages/send/file", { body });
    await expectAnswer(await send(many), { status: 400, contains: wrong("body", /more than 20 fields/) });
    await expectAnswer(await send(long), { status: 400, contains: wrong("caption", /more than/) });
  }));

Deno.test("bulks are listed newest first, page by page, to their own account", () =>
  withApi(async (world) => {
    const sessionId = await world.linkedSession();
    await world.call("POST", `/v1/sessions/${sessionId}/disconnect`);
    const ids: string[] = [];
    for (let size = 1; size <= 3; size++) {
      const messages = Array.from({ length: size }, (_, i) => ({ to: TO, text: `offer ${i}` }));
      const answer = await world.call("POST", "/v1/messages/send/bulk", { json: { sessionId, messages } });
      ids.unshift(JSON.parse(await expectAnswer(answer, { status: 202 })).bulkId);
    }
    const page = async (query: string, options: CallOptions = {}) =>
      JSON.parse(await expectAnswer(await world.call("GET", `/v1/bulks?${query}`, options), { status: 200 }));
    const first = await page("limit=2");
    assert.deepEqual(first.pagination, { page: 1, limit: 2, total: 3 });
    assert.deepEqual(first.data.map(({ bulkId }: { bulkId: string }) => bulkId), ids.slice(0, 2));
    const { createdAt, ...newest } = first.data[0];
    assert.deepEqual(newest, { bulkId: ids[0], sessionId, total: 3, queued: 3, sent: 0, failed: 0, eta: null });
    assert.ok(Date.parse(createdAt) > 0);
    assert.equal((await page("limit=2&page=2")).data[0].bulkId, ids[2]);
    const { apiKey: key } = await world.accounts.create({ name: "other", plan: "tested" });
    assert.deepEqual((await page("", { key })).data, []);
  }));

Deno.test("what waits of a bulk is cancelled with its quota given back, and cancelling it again is no error", () =>
  withApi(async (world) => {
    const sessionId = await world.linkedSession();
    await world.call("POST", `/v1/sessions/${sessionId}/disconnect`);
    const json = { sessionId, messages: [1, 2, 3].map((i) => ({ to: TO, text: `offer ${i}` })) };
    const used = async () => {
      const answer = await world.call("GET", "/v1/account");
      return JSON.parse(await expectAnswer(answer, { status: 200 })).data.used.daily;
    };
    const before = await used();
    const answer = await world.call("POST", "/v1/messages/send/bulk", { json });
    const { bulkId, messages } = JSON.parse(await expectAnswer(answer, { status: 202 }));
    assert.equal(await used(), before + 3);
    for (let time = 0; time < 2; time++) {
      const cancelled = await expectAnswer(await world.call("DELETE", `/v1/bulks/${bulkId}`), { status: 200 });
      const { createdAt: _, ...bulk } = JSON.parse(cancelled).data;
      assert.deepEqual(bulk, { bulkId, sessionId, total: 3, queued: 0, sent: 0, failed: 3, eta: null });
      assert.equal(await used(), before);
    }
    await expectAnswer(await world.call("GET", `/v1/messages/${messages[2].messageId}`), {
      status: 200,
      contains: ['"status":"failed"', '"code":"cancelled"'],
    });
  }));

Deno.test("a repeated reaction or forward gets its first answer, also when its message is deleted meanwhile", () =>
  withApi(async (world) => {
    await world.linkedSession();
    const send = async (kind: string, json: object, headers: Record<string, string> = {}) => {
      const response = await world.call("POST", `/v1/messages/send/${kind}`, { json, headers });
      return JSON.parse(await expectAnswer(response, { status: 202 }));
    };
    const { messageId } = await send("text", { to: "34600111222", text: "hello" });
    await world.runtime.clock.advance(0);
    const requests: [string, object, Record<string, string>][] = [
      ["reaction", { messageId, emoji: "👍" }, { "idempotency-key": "react-1" }],
      ["forward", { messageId, to: "34600111333" }, { "idempotency-key": "forward-1" }],
    ];
    const first = [];
    for (const request of requests) first.push(await send(...request));
    await expectAnswer(await world.call("POST", `/v1/messages/${messageId}/revoke`), { status: 200 });
    for (const [i, request] of requests.entries()) assert.deepEqual(await send(...request), first[i]);
    await expectAnswer(
      await world.call("POST", "/v1/messages/send/reaction", {
        json: { messageId, emoji: "👎" },
        headers: { "idempotency-key": "react-1" },
      }),
      { status: 422 },
    );
  }));

Deno.test("a place, a contact and a poll are shown whole in the record, the history and the chat", () =>
  withApi(async (world) => {
    const session = await world.linkedSession();
    const ana = { name: "Ana", phone: "447700900124" };
    const rows: [kind: string, body: object, details: object | null][] = [
      ["text", { text: "hi" }, null],
      ["location", { latitude: 41.3851, longitude: 2.1734 }, { latitude: 41.3851, longitude: 2.1734 }],
      ["location", { latitude: -1, longitude: 0, name: "Shop", address: "Plaça 1" }, {
        latitude: -1,
        longitude: 0,
        name: "Shop",
        address: "Plaça 1",
      }],
      ["contact", { contacts: [ana, { ...ana, organization: "Acme" }] }, {
        contacts: [
          { name: "Ana", phones: ["447700900124"], organization: null },
          { name: "Ana", phones: ["447700900124"], organization: "Acme" },
        ],
      }],
      ["poll", { question: "When?", options: ["now", "later"] }, { options: ["now", "later"], selectable: 1 }],
      ["poll", { question: "When?", options: ["now", "later"], multiple: true }, {
        options: ["now", "later"],
        selectable: null,
      }],
    ];
    const read = async (path: string) =>
      JSON.parse(await expectAnswer(await world.call("GET", path), { status: 200 })).data;
    for (const [kind, body, details] of rows) {
      const sent = await world.call("POST", `/v1/messages/send/${kind}`, { json: { to: TO, ...body } });
      const { messageId } = JSON.parse(await expectAnswer(sent, { status: 202 }));
      assert.deepEqual((await read(`/v1/messages/${messageId}`)).details, details, kind);
      assert.deepEqual((await read("/v1/messages/history?limit=1"))[0].details, details, kind);
      await until(async () => {
        const [last] = await read(`/v1/sessions/${session}/chats/${TO}/messages?limit=1`);
        return last?.messageId === messageId && (assert.deepEqual(last.details, details, kind), true);
      }, `the chat to show the ${kind}`);
    }
  }));

Deno.test("a repeated upload gets its first answer, also when the account takes too much of the disk by then", async () => {
  const diskShares = new DiskShares();
  await withApi(async (world) => {
    await world.linkedSession();
    world.network.outcome = () => null;
    const json = { to: TO, file: btoa("x"), filename: "a.txt" };
    const send = (key: string) =>
      world.call("POST", "/v1/messages/send/document", { json, headers: { "idempotency-key": key } });
    const first = await expectAnswer(await send("once"), { status: 202 });
    await diskShares.weigh(world.kv, 0);
    assert.equal(await expectAnswer(await send("once"), { status: 202 }), first);
    assert.equal((await world.files()).length, 1);
    await expectAnswer(await send("another"), { status: 429, contains: problem("too_much_at_once") });
    assert.equal((await world.files()).length, 1);
  }, { services: { diskShares } });
});

Deno.test("a bulk that retention removes while the list is read is not on it", () =>
  withApi(async (world) => {
    await world.linkedSession();
    const ids: string[] = [];
    for (const text of ["one", "two"]) {
      const json = { messages: [{ to: TO, text }] };
      const answer = await world.call("POST", "/v1/messages/send/bulk", { json });
      ids.push(JSON.parse(await expectAnswer(answer, { status: 202 })).bulkId);
    }
    await world.kv.commit(new Change().delete(messageKeys.bulk(ids[0]!)));
    const { data } = JSON.parse(await expectAnswer(await world.call("GET", "/v1/bulks"), { status: 200 }));
    assert.deepEqual(data.map(({ bulkId }: { bulkId: string }) => bulkId), [ids[1]]);
  }));
