import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "@hono/zod-openapi";
import { Problem } from "../../../../src/errors.ts";
import { readFormUpload } from "../../../../src/http/body/multipart.ts";
import { StoreError } from "../../../../src/store/kv.ts";
import { withFairWrites } from "../../../../src/media/fair_shares.ts";
import { systemClock } from "../../../../src/runtime.ts";
import { type FakeMedia, fakeMedia } from "../../../support/fake_media.ts";

const schema = z.object({ to: z.string(), caption: z.string().optional(), file: z.string() });

function requestOf(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  parameters = "boundary=B",
): Request {
  return new Request("http://x/", {
    method: "POST",
    headers: { "content-type": `multipart/form-data; ${parameters}` },
    body: ReadableStream.from(chunks),
    duplex: "half",
  } as RequestInit);
}

async function* arriving(...parts: string[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    yield new TextEncoder().encode(part);
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

const field = (name: string, value: string) =>
  `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const file = (content: string, filename = 'filename="a.png"') =>
  `--B\r\nContent-Disposition: form-data; name="file"; ${filename}\r\nContent-Type: image/png\r\n\r\n${content}\r\n`;
const END = "--B--\r\n";

const options = (media: FakeMedia) => ({
  part: "file",
  schema,
  media: withFairWrites(media, systemClock),
  accountId: "acc_1",
  maxBytes: 1000,
});

function read(text: string, { chunkSize = 50, media = fakeMedia() }: { chunkSize?: number; media?: FakeMedia } = {}) {
  const bytes = new TextEncoder().encode(text);
  const chunks = Array.from(
    { length: Math.ceil(bytes.length / chunkSize) },
    (_, i) => bytes.subarray(i * chunkSize, (i + 1) * chunkSize),
  );
  return readFormUpload(requestOf(chunks), options(media));
}

Deno.test("a form is read the same wherever it is cut", async () => {
  const content = "first line\r\n--not the boundary\r\n\r\nlast";
  const form = field("to", "34600111222") + file(content) + field("caption", "after – 🎉") + END;
  for (let chunkSize = 1; chunkSize < form.length; chunkSize += chunkSize < 20 ? 1 : 23) {
    const media = fakeMedia();
    const upload = await read(form, { chunkSize, media });
    assert.deepEqual(upload.fields, { to: "34600111222", caption: "after – 🎉", file: "" });
    assert.equal(upload.filename, "a.png");
    assert.equal(Buffer.from(media.files.get(upload.file.fileId)!).toString(), content);
  }
});

Deno.test("a form is read wherever it is cut by the network, its very end included", async () => {
  const form = field("to", "34600111222") + file("content") + END;
  for (let cut = 1; cut < form.length; cut++) {
    const upload = await readFormUpload(requestOf(arriving(form.slice(0, cut), form.slice(cut))), options(fakeMedia()));
    assert.deepEqual(upload.fields, { to: "34600111222", file: "" });
  }
});

Deno.test("a form is read by its boundary, however the client writes that", async () => {
  const form = field("to", "34600111222") + file("content") + END;
  for (
    const parameters of [
      'boundary="B"',
      "boundary = B",
      'charset="utf-8"; Boundary=B',
      'other="; boundary=another"; boundary=B',
      "boundary=B; boundary=another",
    ]
  ) {
    const upload = await readFormUpload(requestOf(arriving(form, "epilogue"), parameters), options(fakeMedia()));
    assert.deepEqual(upload.fields, { to: "34600111222", file: "" }, parameters);
  }
});

Deno.test("a form that is none is refused, and nobody waits for its end", async () => {
  const form = field("to", "34600111222") + file("content") + END;
  const rows: [parameters: string, form: string][] = [
    ["boundary*=utf-8''B", form],
    ['boundary=""', form.replaceAll("--B", "--")],
    ["boundary=", form.replaceAll("--B", "--")],
    ["boundary=another", form],
    ['boundary="B', form],
    [`boundary=${"B".repeat(71)}`, form.replaceAll("--B", `--${"B".repeat(71)}`)],
    ["boundary=B", `--B\r\n\r\n${END}`],
    ["boundary=B", `--B\r\nContent-Disposition: form-data; name="to"\r\n${END}`],
    ["boundary=B", `--B\r\n${"X-Long: header\r\n".repeat(2000)}\r\n\r\n${END}`],
    ["boundary=B", field("to", "34600111222") + "--B\r\n" + END],
    ["boundary=B", field("to", "34600111222").replaceAll("\r\n", "\n") + END],
  ];
  for (const [parameters, text] of rows) {
    const media = fakeMedia();
    await assert.rejects(
      readFormUpload(requestOf(arriving(text, "epilogue"), parameters), options(media)),
      (error) => error instanceof Problem && error.status === 400 || assert.fail(String(error)),
      parameters + text.slice(0, 100),
    );
    assert.equal(media.files.size, 0);
  }
});

Deno.test("a field is text in the charset that it names, else in UTF-8, or is refused", async () => {
  const caption = (type: string, bytes: number[]) => [
    Buffer.from(`--B\r\nContent-Disposition: form-data; name="caption"\r\n${type}\r\n`),
    Buffer.from(bytes),
    Buffer.from(`\r\n${field("to", "34600111222")}${file("content")}${END}`),
  ];
  const latin1 = "Content-Type: text/plain; charset=iso-8859-1\r\n";
  const { fields } = await readFormUpload(requestOf(caption(latin1, [0xfc])), options(fakeMedia()));
  assert.equal(fields.caption, "ü");
  for (const [type, bytes] of [["", [0xfc]], [latin1.replace("iso-8859-1", "none"), [0x41]]] as const) {
    await assert.rejects(
      readFormUpload(requestOf(caption(type, [...bytes])), options(fakeMedia())),
      (error: Problem) => assert.match(error.message, /^caption: is not text in/) ?? true,
    );
  }
});

Deno.test("a file keeps its name, however the client writes it", async () => {
  const rows: [written: string, filename: string][] = [
    ['filename="Büro 🎉.pdf"', "Büro 🎉.pdf"],
    ["filename*=UTF-8''B%C3%BCro.pdf", "Büro.pdf"],
    ["filename=\"buero.pdf\"; filename*=UTF-8''B%C3%BCro.pdf", "Büro.pdf"],
    ['filename="5 %22 pipe.pdf"', '5 " pipe.pdf'], // browsers, Node.js, curl from 7.81
    ['filename="5 \\" pipe.pdf"', '5 " pipe.pdf'], // older curl, Python
    ['filename="100%20%.pdf"', "100%20%.pdf"],
    ["filename=bare.pdf", "bare.pdf"],
    ["filename*=iso-8859-1'de'B%FCro.pdf", "Büro.pdf"], // RFC 8187
    ["filename*=windows-1252''10%80.pdf", "10€.pdf"],
    ["filename*0*=UTF-8''B%C3; filename*1*=%BCro; filename*2=\".pdf\"", "Büro.pdf"], // RFC 2231: Python, JavaMail
    ['filename*0="long-"; filename*1="name.pdf"', "long-name.pdf"],
    ['filename="=?UTF-8?B?QsO8cm8ucGRm?="', "Büro.pdf"], // RFC 2047: Delphi's Indy, .NET
    ['filename="=?utf-8?q?B=C3=BCro_1.pdf?="', "Büro 1.pdf"],
    ['filename="=?iso-8859-1?Q?B=FCro?= =?iso-8859-1?Q?_1?=.pdf"', "Büro 1.pdf"],
    ['filename="=?UTF-8?Q?B=C3?=\r\n =?UTF-8?Q?=BCro.pdf?="', "Büro.pdf"], // a character cut in two
    ['filename="a =?UTF-8?Q?b?= =?iso-8859-1?Q?=FC?= c.pdf"', "a bü c.pdf"],
    ['filename="=?Shift_JIS?B?kL+LgZGQLnBkZg==?="', "請求草.pdf"],
    ['filename="what=?.pdf"', "what=?.pdf"],
    ['filename="Rechnung%2012%20%C3%BC.pdf"', "Rechnung 12 ü.pdf"], // aiohttp
    ['filename="50%25.pdf"', "50%25.pdf"],
    ['filename="%C3%BCber uns.pdf"', "%C3%BCber uns.pdf"],
    ['filename="%FF.pdf"', "%FF.pdf"],
  ];
  for (const [written, filename] of rows) {
    const upload = await read(field("to", "34600111222") + file("content", written) + END);
    assert.equal(upload.filename, filename, written);
  }
});

const coded = (encoding: string, content: string, disposition = 'name="file"; filename="a.png"') =>
  `--B\r\ncontent-transfer-encoding:  ${encoding}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`;

Deno.test("a part is decoded from its transfer encoding, wherever it is cut", async () => {
  const content = "Müller & Söhne = 100 %\r\n\x00\x01";
  const quoted = "M=C3=BCller & S=c3=b6h=\r\nne =3D 100=\n=20%\r\n=00=01=";
  const base64 = Buffer.from(content).toString("base64").replace(/.{8}/g, "$&\r\n") + "\r\n";
  const rows: [encoding: string, written: string][] = [
    ["base64", base64],
    ["BASE64", base64.trim()],
    ["quoted-printable", quoted],
    ["Quoted-Printable", `${quoted}\r\n`],
    ["8bit", content],
    ["binary", content],
  ];
  for (const [encoding, written] of rows) {
    const form = coded(encoding, written) + coded(encoding, written, 'name="caption"') + field("to", "1") + END;
    for (const chunkSize of [1, 2, 3, 5, 7, 1000]) {
      const media = fakeMedia();
      const upload = await read(form, { chunkSize, media });
      assert.equal(Buffer.from(media.files.get(upload.file.fileId)!).toString(), content, encoding);
      assert.equal(upload.fields.caption, content, encoding);
    }
  }
});

Deno.test("a name or a part that cannot be decoded is refused by the part's name", async () => {
  const named = (disposition: string) => coded("8bit", "x", disposition);
  const rows: [part: string, path: string, message: RegExp][] = [
    [coded("base64", "aGVs bG8="), "file", /blank/],
    [coded("base64", "aGVsbG8=x"), "file", /padded/],
    [coded("base64", "%PDF-1.4"), "file", /not base64/],
    [coded("quoted-printable", "100 =% off"), "file", /quoted-printable/],
    [coded("quoted-printable", "=C"), "file", /quoted-printable/],
    [coded("x-uuencode", "begin 644"), "file", /Content-Transfer-Encoding/],
    [coded("base64", "_", 'name="caption"'), "caption", /base64/],
    [coded("quoted-printable", "=FF", 'name="caption"'), "caption", /not text in utf-8/],
    [named(`name="file"; filename*=none''x.png`), "file", /name that is not text in none/],
    [named(`name="file"; filename*=UTF-8''%FF.png`), "file", /name that is not text in UTF-8/],
    [named(`name="file"; filename*=UTF-8''%F.png`), "file", /name that has a code that is cut off/],
    [named(`name="file"; filename*=x.png`), "file", /name that does not state its charset/],
    [named('name="file"; filename="=?UTF-8?B?/w==?="'), "file", /name that is not text in utf-8/],
    [named('name="file"; filename="=?UTF-8?B?a_b?="'), "file", /name that .* not base64/],
    [named('name="file"; filename="=?none?Q?a?="'), "file", /name that is not text in none/],
    [named('name="=?none?Q?a?="'), "=?none?Q?a?=", /name that is not text in none/],
  ];
  for (const [part, path, message] of rows) {
    const media = fakeMedia();
    await assert.rejects(read(field("to", "1") + part + END, { media }), (error: Problem) => {
      assert.match(error.message, message, part);
      assert.deepEqual(error.extras.errors!.map(({ path }) => path), [path], part);
      return true;
    });
    assert.equal(media.files.size, 0);
  }
  const bytes = Buffer.from(field("to", "1") + file("x", 'filename="\xfc.png"') + END, "latin1");
  await assert.rejects(
    readFormUpload(requestOf([bytes]), options(fakeMedia())),
    (error: Problem) => assert.match(error.message, /^file: has a name that is not text in utf-8/) ?? true,
  );
});

Deno.test("the names of parts are decoded too", async () => {
  const form = coded("8bit", "1", 'name="=?UTF-8?Q?t=6F?="') + file("x") + coded("8bit", "c", "name*=UTF-8''caption") +
    END;
  assert.deepEqual((await read(form)).fields, { to: "1", caption: "c", file: "" });
});

Deno.test("the part's type is told, as the client writes it", async () => {
  const typed = (type: string) =>
    `--B\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n${type}\r\nx\r\n`;
  const rows: [header: string, mimetype: string | null][] = [
    ["", null],
    ["Content-Type: application/PDF; name=a.pdf\r\n", "application/PDF; name=a.pdf"],
    ["content-type:text/plain\r\n", "text/plain"],
  ];
  for (const [header, mimetype] of rows) {
    assert.equal((await read(field("to", "1") + typed(header) + END)).mimetype, mimetype);
  }
});

Deno.test("a form that ends anywhere before its end leaves no file", async () => {
  const form = field("to", "34600111222") + file("content") + END;
  for (let length = 0; length < form.length - 4; length += 3) {
    const media = fakeMedia();
    await assert.rejects(
      read(form.slice(0, length), { media }),
      (error) => error instanceof Problem && error.status === 400 || assert.fail(String(error)),
      `cut at ${length}`,
    );
    assert.equal(media.files.size, 0);
  }
});

Deno.test("a store that fails, early or at the very end, is the store's failure", async () => {
  const form = field("to", "34600111222") + file("x".repeat(500)) + END;
  const early = { ...fakeMedia(), write: () => Promise.reject(new StoreError("full", "no space")) };
  const media = fakeMedia();
  const late: FakeMedia = {
    ...media,
    async write(content, maxBytes) {
      await media.write(content, maxBytes);
      // After the form was read to its end, as a failing fsync is.
      await new Promise((resolve) => setImmediate(resolve));
      throw new StoreError("full", "no space");
    },
  };
  for (const failing of [early, late]) {
    await assert.rejects(
      read(form, { media: failing }),
      (error) => error instanceof StoreError && error.code === "full",
    );
  }
});

Deno.test("a file over the limit is refused as too large", async () => {
  const media = fakeMedia();
  await assert.rejects(
    read(field("to", "1") + file("x".repeat(1001)) + END, { media }),
    (error) => error instanceof Problem && error.code === "payload_too_large",
  );
  assert.equal(media.files.size, 0);
});

Deno.test("names that mean something to objects are fields like any other", async () => {
  const { fields } = await read(field("__proto__", "x") + field("to", "1") + file("y") + END);
  assert.deepEqual(Object.keys(fields).sort(), ["file", "to"]);
});

Deno.test("parts without a name are not read without end", async () => {
  const form = field("to", "34600111222") + "--B\r\n\r\n\r\n".repeat(1000) + file("content") + END;
  const media = fakeMedia();
  await assert.rejects(
    read(form, { media }),
    (error) => error instanceof Problem && error.status === 400 && /parts/.test(error.message),
  );
  assert.equal(media.files.size, 0);
});
