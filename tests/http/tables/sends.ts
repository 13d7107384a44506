/** Requests that send, and what they answer. */
import { type Case, nobodys, problem, wrong } from "../../support/api_table.ts";
import type { CallOptions } from "../../support/api_world.ts";

const TO = "34600111222";
const ACK = /^\{"messageId":"msg_[0-9a-z]{26}","status":"queued","jobId":"job_[0-9a-z]{26}"\}$/;
const PDF = btoa("%PDF-1.4 tiny");

function form(fields: [string, string | File][]): CallOptions {
  const body = new FormData();
  for (const [name, value] of fields) body.append(name, value);
  return { body };
}

const picture = () => new File([new Uint8Array([137, 80, 78, 71])], "Fotó 1.png");

function text(name: string, json: unknown, contains: Case["contains"], status = 400): Case {
  return { name, ask: () => ["POST", "/v1/messages/send/text", { json }], status, contains };
}

function document(name: string, json: unknown, contains: Case["contains"], status = 400): Case {
  return { name, ask: () => ["POST", "/v1/messages/send/document", { json }], status, contains };
}

export const textCases: readonly Case[] = [
  {
    name: "a text is acknowledged bare",
    ask: (
      { session },
    ) => ["POST", "/v1/messages/send/text", { json: { sessionId: session, to: TO, text: "Hello 👋" } }],
    status: 202,
    contains: [ACK],
    lacks: ["data", "networkId"],
  },
  text("the first connected session sends when none is given", { to: TO, text: "hi" }, [ACK], 202),
  text("a group is a recipient", { to: "120363025246125486@g.us", text: "hi" }, [ACK], 202),
  text("an old group is a recipient", { to: "34600111222-1612345678@g.us", text: "hi" }, [ACK], 202),
  text("a JID of an event is a recipient", { to: "34600111222@s.whatsapp.net", text: "hi" }, [ACK], 202),
  text("a hidden number of an event is a recipient", { to: "123456789012345@lid", text: "hi" }, [ACK], 202),
  text("a text of 65,536 characters passes", { to: TO, text: "x".repeat(65_536) }, [ACK], 202),
  text("characters are counted, not halves of them", { to: TO, text: "👋".repeat(65_536) }, [ACK], 202),
  text("a time to live is taken in seconds", { to: TO, text: "hi", ttl: 60 }, [ACK], 202),
  text("null is as good as left out", { sessionId: null, to: TO, text: "hi", ttl: null }, [ACK], 202),
  text(
    "a field that the API does not know is named",
    { to: TO, text: "hi", scheduleAt: "2026-01-15T12:00:00Z" },
    wrong("scheduleAt", /not a known field/),
  ),
  text("each unknown field is named", { to: TO, text: "hi", view_once: true, mention: [] }, [
    ...wrong("view_once"),
    ...wrong("mention"),
  ]),
  text("a field that is unknown is so with null, too", { to: TO, text: "hi", campaign: null }, wrong("campaign")),
  text("names are known in their own case alone", { to: TO, text: "hi", sessionID: null }, wrong("sessionID")),
  text("the long name of an unknown field is cut", { to: TO, text: "hi", ["x".repeat(5_000)]: 1 }, [
    ...wrong("x".repeat(100)),
  ]),
  {
    name: "a name that objects have anyway is as unknown as any",
    ask: () => ["POST", "/v1/messages/send/text", {
      body: '{"to":"34600111222","text":"hi","__proto__":{"ttl":1},"constructor":1}',
      headers: { "content-type": "application/json" },
    }],
    status: 400,
    contains: [...wrong("__proto__"), ...wrong("constructor")],
  },
  text("65,537 characters are too many", { to: TO, text: "x".repeat(65_537) }, wrong("text", /more than 65,536/)),
  text("an empty text is none", { to: TO, text: "" }, wrong("text", /is empty/)),
  text("a text is required", { to: TO }, wrong("text", /is required/)),
  text("a text is a string", { to: TO, text: 5 }, wrong("text")),
  text("half a surrogate pair is no text", { to: TO, text: "\ud83d" }, wrong("text", /surrogate/)),
  text("a recipient is required", { text: "hi" }, wrong("to", /is required/)),
  ...["600111", "3460011122233344", "0600111222", "abc", "", "٣٤٦٠٠١١١٢٢٢"].map(
    (to) => text(`the recipient "${to}" is refused with advice`, { to, text: "hi" }, wrong("to", /country code/)),
  ),
  text("a JID with a device is refused", { to: "34600111222:3@s.whatsapp.net", text: "hi" }, wrong("to")),
  text("a priority is one of three", { to: TO, text: "hi", priority: "low" }, [ACK], 202),
  text("a priority that there is not is refused", { to: TO, text: "hi", priority: "urgent" }, wrong("priority")),
  text(
    "a time in the past is refused",
    { to: TO, text: "hi", sendAt: "2001-01-01T00:00:00Z" },
    wrong("sendAt", /past/),
  ),
  text(
    "a time too far ahead is refused",
    { to: TO, text: "hi", sendAt: "2999-01-01T00:00:00Z" },
    wrong("sendAt", /30 days/),
  ),
  text("a time without its zone is refused", { to: TO, text: "hi", sendAt: "2999-01-01T00:00:00" }, wrong("sendAt")),
  text("a time to live of nothing is refused", { to: TO, text: "hi", ttl: 0 }, wrong("ttl")),
  text("a list is no body", [1], wrong("body")),
  text("null is no body", null, wrong("body")),
  text(
    "a session that nobody has is 404",
    { sessionId: nobodys("ses"), to: TO, text: "hi" },
    problem("not_found"),
    404,
  ),
  {
    name: "JSON that is cut off is malformed",
    ask: () => ["POST", "/v1/messages/send/text", {
      body: '{"to":"34600111222","text":"sec',
      headers: { "content-type": "application/json" },
    }],
    status: 400,
    contains: problem("malformed_json"),
    lacks: ['sec"', "34600111222"],
  },
  {
    name: "an empty body is malformed",
    ask: () => ["POST", "/v1/messages/send/text", { body: "", headers: { "content-type": "application/json" } }],
    status: 400,
    contains: [...problem("malformed_json"), "empty"],
  },
  {
    name: "bytes that are not UTF-8 are malformed",
    ask: () => ["POST", "/v1/messages/send/text", {
      body: new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
      headers: { "content-type": "application/json" },
    }],
    status: 400,
    contains: problem("malformed_json"),
  },
  {
    name: "a body that is nested too deep is refused",
    ask: () => ["POST", "/v1/messages/send/text", {
      body: `{"to":"34600111222","text":"hi","x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
      headers: { "content-type": "application/json" },
    }],
    status: 400,
    contains: wrong("body", /deeper than 32/),
  },
  {
    name: "a body over a mebibyte is too large",
    ask: () => ["POST", "/v1/messages/send/text", { json: { to: TO, text: "x".repeat(1024 * 1024) } }],
    status: 413,
    contains: problem("payload_too_large"),
  },
  {
    name: "another content type is refused",
    ask: () => ["POST", "/v1/messages/send/text", {
      body: "to=34600111222&text=hi",
      headers: { "content-type": "application/x-www-form-urlencoded" },
    }],
    status: 415,
    contains: [...problem("unsupported_media_type"), "application/json"],
  },
  {
    name: "a charset that is not UTF-8 is refused",
    ask: () => ["POST", "/v1/messages/send/text", {
      body: JSON.stringify({ to: TO, text: "hi" }),
      headers: { "content-type": "application/json; charset=iso-8859-1" },
    }],
    status: 415,
    contains: [...problem("unsupported_media_type"), "iso-8859-1"],
  },
  {
    name: "a compressed body is refused",
    ask: () => ["POST", "/v1/messages/send/text", {
      body: "x",
      headers: { "content-type": "application/json", "content-encoding": "gzip" },
    }],
    status: 415,
    contains: [...problem("unsupported_media_type"), "gzip"],
  },
  {
    name: "the charset of a content type does not matter",
    ask: () => ["POST", "/v1/messages/send/text", {
      body: JSON.stringify({ to: TO, text: "hi" }),
      headers: { "content-type": "Application/JSON; charset=utf-8" },
    }],
    status: 202,
    contains: [ACK],
  },
  {
    name: "an idempotency key with blanks is refused",
    ask: () => ["POST", "/v1/messages/send/text", {
      json: { to: TO, text: "hi" },
      headers: { "idempotency-key": "a b" },
    }],
    status: 400,
    contains: wrong("idempotency-key"),
  },
];

export const documentCases: readonly Case[] = [
  document(
    "null is as good as left out beside a file",
    { sessionId: null, to: TO, file: PDF, filename: "a.pdf", caption: null, ttl: null },
    [ACK],
    202,
  ),
  document("a document is acknowledged bare", { to: TO, file: PDF, filename: "a.pdf", caption: "x" }, [ACK], 202),
  document(
    "a data URL is taken",
    { to: TO, file: `data:application/pdf;base64,${PDF}`, filename: "a.pdf" },
    [ACK],
    202,
  ),
  document(
    "a data URL with parameters is taken",
    {
      to: TO,
      file: `data:text/plain;charset=utf-8;base64,${PDF}`,
      filename: "a.txt",
    },
    [ACK],
    202,
  ),
  document("base64 without its padding is taken", { to: TO, file: "aGVsbG8", filename: "a.txt" }, [ACK], 202),
  document("line breaks in base64 are taken", { to: TO, file: "aGVs\r\nbG8=\n", filename: "a.txt" }, [ACK], 202),
  {
    name: "base64 as PHP writes it, with escaped slashes, is taken",
    ask: () => ["POST", "/v1/messages/send/document", {
      body: '{"to":"34600111222","file":"\\/\\/\\/\\u002b","filename":"a.bin"}',
      headers: { "content-type": "application/json" },
    }],
    status: 202,
    contains: [ACK],
  },
  {
    name: "fields may follow the file",
    ask: () => ["POST", "/v1/messages/send/document", {
      body: `{"file":"${PDF}","filename":"a.pdf","to":"34600111222"}`,
      headers: { "content-type": "application/json" },
    }],
    status: 202,
    contains: [ACK],
  },
  document(
    "a field that no document has is named",
    { to: TO, file: PDF, filename: "a.pdf", viewOnce: true },
    wrong("viewOnce"),
  ),
  {
    name: "a file within an unknown field is no file",
    ask: () => ["POST", "/v1/messages/send/document", {
      body: `{"file":"${PDF}","x":{"file":"!"},"filename":"a.pdf","to":"34600111222"}`,
      headers: { "content-type": "application/json" },
    }],
    status: 400,
    contains: wrong("x"),
  },
  document("a file is required", { to: TO, filename: "a.pdf" }, wrong("file", /is required/)),
  document("a file is a string", { to: TO, file: 5, filename: "a.pdf" }, wrong("file")),
  document("an empty file is none", { to: TO, file: "", filename: "a.pdf" }, wrong("file", /is empty/)),
  document(
    "a prefix alone is no file",
    { to: TO, file: "data:x/y;base64,", filename: "a.pdf" },
    wrong("file", /is empty/),
  ),
  document("a data URL that is not base64 is refused", { to: TO, file: "data:text/plain,hello", filename: "a.txt" }, [
    ...wrong("file", /;base64,/),
  ]),
  document(
    "what is not base64 is refused",
    { to: TO, file: "not base64!", filename: "a.pdf" },
    wrong("file", /not base64/),
  ),
  document("base64 that is cut off is refused", { to: TO, file: "aGVsb", filename: "a.pdf" }, wrong("file", /cut off/)),
  document(
    "padding in the middle is refused",
    { to: TO, file: "aGVs=bG8=", filename: "a.pdf" },
    wrong("file", /padded/),
  ),
  document("a filename is required", { to: TO, file: PDF }, wrong("filename", /is required/)),
  document(
    "a filename without end is refused before it is looked at",
    { to: TO, file: PDF, filename: "a".repeat(400_000) + "/" },
    wrong("filename"),
  ),
  document("a filename may be spelled with a folder", { to: TO, file: PDF, filename: "../b/.c.pdf" }, [ACK], 202),
  document("an empty filename is wrong once", { to: TO, file: PDF, filename: "" }, [
    /"errors":\[{"path":"filename","message":"is empty"}\]/,
  ]),
  document("a filename must be one", { to: TO, file: PDF, filename: "../.." }, wrong("filename")),
  document("the recipient of a document is checked", { to: "+1", file: PDF, filename: "a.pdf" }, wrong("to")),
  document(
    "a caption has bounds",
    { to: TO, file: PDF, filename: "a.pdf", caption: "x".repeat(65_537) },
    wrong("caption"),
  ),
  {
    name: "a document whose JSON is cut off is malformed",
    ask: () => ["POST", "/v1/messages/send/document", {
      body: `{"to":"34600111222","filename":"a.pdf","file":"${PDF}`,
      headers: { "content-type": "application/json" },
    }],
    status: 400,
    contains: problem("malformed_json"),
  },
  {
    name: "a file that is given twice is refused",
    ask: () => ["POST", "/v1/messages/send/document", {
      body: `{"to":"34600111222","filename":"a.pdf","file":"${PDF}","file":"${PDF}"}`,
      headers: { "content-type": "application/json" },
    }],
    status: 400,
    contains: wrong("file", /twice/),
  },
  {
    name: "a document comes as JSON",
    ask: () => ["POST", "/v1/messages/send/document", form([["to", TO], ["file", picture()]])],
    status: 415,
    contains: problem("unsupported_media_type"),
  },
  {
    name: "a PDF is acknowledged bare, with the key in its header",
    ask: () => ["POST", "/v1/message/send/pdf", {
      json: { file: PDF, number: TO, message: "Invoice", filename: "i.pdf" },
    }],
    status: 202,
    contains: [ACK],
  },
  {
    name: "a PDF takes the Bearer form",
    ask: ({ stage }) => ["POST", "/v1/message/send/pdf", {
      key: null,
      headers: { authorization: `Bearer ${stage.apiKey}` },
      json: { file: PDF, number: TO, message: "Invoice", filename: "i.pdf" },
    }],
    status: 202,
    contains: [ACK],
  },
  {
    name: "a PDF takes what every send takes",
    ask: () => ["POST", "/v1/message/send/pdf", {
      json: {
        file: PDF,
        number: TO,
        mentions: [TO],
        linkPreview: false,
        typing: 10,
        ttl: 60,
        priority: "low",
        viewOnce: false,
        replyTo: null,
        sendAt: null,
      },
    }],
    status: 202,
    contains: [ACK],
  },
  ...([
    ["viewOnce", true],
    ["mentions", "all"],
    ["sendAt", "2020-01-01T00:00:00Z"],
    ["priority", "urgent"],
    ["ttl", 0],
    ["typing", 20_001],
  ] as const).map(([field, value]): Case => ({
    name: `a PDF with a wrong ${field} is refused`,
    ask: () => ["POST", "/v1/message/send/pdf", { json: { file: PDF, number: TO, [field]: value } }],
    status: 400,
    contains: wrong(field),
  })),
  {
    name: "a PDF needs a number",
    ask: () => ["POST", "/v1/message/send/pdf", { json: { file: PDF, message: "Invoice", filename: "i.pdf" } }],
    status: 400,
    contains: wrong("number", /is required/),
  },
  {
    name: "a field that no PDF has is named",
    ask: () => ["POST", "/v1/message/send/pdf", { json: { file: PDF, number: TO, caption: "Invoice" } }],
    status: 400,
    contains: wrong("caption"),
  },
  {
    name: "a PDF needs a file",
    ask: () => ["POST", "/v1/message/send/pdf", { json: { number: TO } }],
    status: 400,
    contains: wrong("file", /is required/),
  },
];

export const fileCases: readonly Case[] = [
  {
    name: "fields of a form that were not filled in are as good as left out",
    ask: () => [
      "POST",
      "/v1/messages/send/file",
      form([["sessionId", ""], ["to", TO], ["ttl", ""], ["caption", ""], ["file", picture()]]),
    ],
    status: 202,
    contains: [ACK],
  },
  {
    name: "a file is acknowledged bare",
    ask: ({ session }) => [
      "POST",
      "/v1/messages/send/file",
      form([["sessionId", session], ["to", TO], ["caption", "Look"], ["file", picture()]]),
    ],
    status: 202,
    contains: [ACK],
  },
  {
    name: "fields after the file count too",
    ask: () => ["POST", "/v1/messages/send/file", form([["file", picture()], ["to", TO], ["caption", "Late"]])],
    status: 202,
    contains: [ACK],
  },
  {
    name: "a part that is a file is required",
    ask: () => ["POST", "/v1/messages/send/file", form([["to", TO], ["file", "text"]])],
    status: 400,
    contains: wrong("file"),
  },
  {
    name: "an empty file is refused",
    ask: () => ["POST", "/v1/messages/send/file", form([["to", TO], ["file", new File([], "a.png")]])],
    status: 400,
    contains: wrong("file", /is empty/),
  },
  {
    name: "a file under another name is refused",
    ask: () => ["POST", "/v1/messages/send/file", form([["to", TO], ["upload", picture()]])],
    status: 400,
    contains: wrong("upload", /named/),
  },
  {
    name: "a second file is refused",
    ask: () => ["POST", "/v1/messages/send/file", form([["to", TO], ["file", picture()], ["file", picture()]])],
    status: 400,
    contains: wrong("file", /twice/),
  },
  {
    name: "a field that is given twice is refused",
    ask: () => ["POST", "/v1/messages/send/file", form([["to", TO], ["to", TO], ["file", picture()]])],
    status: 400,
    contains: wrong("to", /twice/),
  },
  {
    name: "a part that the API does not know is named",
    ask: () => ["POST", "/v1/messages/send/file", form([["scheduleAt", "1"], ["to", TO], ["file", picture()]])],
    status: 400,
    contains: wrong("scheduleAt", /not a known field/),
  },
  {
    name: "an unknown part is so without a value, and behind the file",
    ask:
      () => ["POST", "/v1/messages/send/file", form([["to", TO], ["file", picture()], ["x", ""], ["__proto__", "1"]])],
    status: 400,
    contains: [...wrong("x"), ...wrong("__proto__")],
  },
  {
    name: "a form takes what every send takes",
    ask: () => [
      "POST",
      "/v1/messages/send/file",
      form([
        ["to", TO],
        ["mentions", `${TO}, 34600111223`],
        ["viewOnce", "true"],
        ["linkPreview", "false"],
        ["typing", "10"],
        ["ttl", "60"],
        ["priority", "low"],
        ["file", picture()],
      ]),
    ],
    status: 202,
    contains: [ACK],
  },
  ...([["viewOnce", "yes"], ["linkPreview", "1"], ["typing", "x"], ["mentions", "all"], ["priority", "urgent"], [
    "ttl",
    "0",
  ], ["sendAt", "soon"]] as const).map(([field, value]): Case => ({
    name: `a form with a wrong ${field} is refused`,
    ask: () => ["POST", "/v1/messages/send/file", form([["to", TO], [field, value], ["file", picture()]])],
    status: 400,
    contains: wrong(field),
  })),
  {
    name: "a field that is empty once and filled once is filled",
    ask: () => ["POST", "/v1/messages/send/file", form([["to", ""], ["to", TO], ["to", ""], ["file", picture()]])],
    status: 202,
    contains: [ACK],
  },
  {
    name: "the recipient of a file is required",
    ask: () => ["POST", "/v1/messages/send/file", form([["file", picture()]])],
    status: 400,
    contains: wrong("to", /is required/),
  },
  {
    name: "a form that is cut off is refused",
    ask: () => ["POST", "/v1/messages/send/file", {
      body: '--B\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\nabc',
      headers: { "content-type": "multipart/form-data; boundary=B" },
    }],
    status: 400,
    contains: wrong("body", /not complete multipart/),
  },
  {
    name: "a form without a boundary is refused",
    ask: () => ["POST", "/v1/messages/send/file", { body: "x", headers: { "content-type": "multipart/form-data" } }],
    status: 400,
    contains: wrong("body"),
  },
  {
    name: "a file comes as a form",
    ask: () => ["POST", "/v1/messages/send/file", { json: { to: TO, file: PDF } }],
    status: 415,
    contains: [...problem("unsupported_media_type"), "multipart/form-data"],
  },
];

export const bulkCases: readonly Case[] = [
  {
    name: "a bulk answers with one acknowledgement an item, in order",
    ask: ({ session }) => ["POST", "/v1/messages/send/bulk", {
      json: { sessionId: session, messages: [{ to: TO, text: "a" }, { to: "120363025246125486@g.us", text: "b" }] },
    }],
    status: 202,
    contains: [
      /^\{"bulkId":"blk_[0-9a-z]{26}","total":2,"status":"queued","messages":\[/,
      /\{"index":0,"to":"34600111222","messageId":"msg_\w+","status":"queued","jobId":"job_\w+"\}/,
      /"index":1,"to":"120363025246125486@g\.us"/,
    ],
  },
  {
    name: "null is as good as left out in an item",
    ask: () => ["POST", "/v1/messages/send/bulk", {
      json: {
        sessionId: null,
        messages: [
          { to: TO, text: "a", fileUrl: null, caption: null },
          { to: TO, text: null, fileUrl: "https://example.com/a.png", caption: null },
        ],
      },
    }],
    status: 202,
    contains: ['"total":2'],
  },
  bulk("an item with neither text nor file is refused", [{ to: TO, text: "a" }, { to: TO }], wrong("messages.1.text")),
  bulk(
    "an item with text and file is refused",
    [{ to: TO, text: "a", fileUrl: "https://example.com/a.png" }],
    wrong("messages.0.text", /no two/),
  ),
  bulk("a caption goes with a file", [{ to: TO, text: "a", caption: "b" }], wrong("messages.0.caption")),
  bulk(
    "the third recipient is named by its path",
    [{ to: TO, text: "a" }, { to: TO, text: "b" }, { to: "+1", text: "c" }],
    wrong("messages.2.to"),
  ),
  ...["ftp://example.com/a.png", "file:///etc/passwd", "example.com/a.png", "javascript:alert(1)"].map((fileUrl) =>
    bulk(`the file address ${fileUrl} is refused`, [{ to: TO, fileUrl }], wrong("messages.0.fileUrl"))
  ),
  bulk(
    "an unknown field of an item is named by its path",
    [{ to: TO, text: "a" }, { to: TO, text: "b" }, { to: TO, text: "c", foo: 1 }],
    wrong("messages.2.foo", /not a known field/),
  ),
  bulk("what stands for all items is no field of one", [{ to: TO, text: "a", ttl: 60 }], wrong("messages.0.ttl")),
  {
    name: "an unknown field beside the items is named",
    ask: () => ["POST", "/v1/messages/send/bulk", { json: { messages: [{ to: TO, text: "a" }], delay: 5 } }],
    status: 400,
    contains: wrong("delay"),
  },
  bulk("a bulk of nothing is refused", [], wrong("messages")),
  bulk("10,001 items are too many", Array(10_001).fill({ to: TO, text: "a" }), wrong("messages")),
  {
    name: "messages are required",
    ask: () => ["POST", "/v1/messages/send/bulk", { json: {} }],
    status: 400,
    contains: wrong("messages", /is required/),
  },
];

function bulk(name: string, messages: unknown[], contains: Case["contains"]): Case {
  return { name, ask: () => ["POST", "/v1/messages/send/bulk", { json: { messages } }], status: 400, contains };
}
