/** What is sent for each kind of body: texts untouched, files encrypted so that a receiver can verify them. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createDecipheriv, createHash, createHmac } from "node:crypto";
import { getMediaKeys, type proto } from "@whiskeysockets/baileys";
import type { FileFacts } from "../../../../src/inspect/inspection.ts";
import { fileFacts } from "../../../../src/inspect/file_facts.ts";
import { encode, type EncodeTools } from "../../../../src/whatsapp/baileys/outgoing/encode.ts";
import { type Upload, UploadFailed } from "../../../../src/whatsapp/baileys/outgoing/media_upload.ts";
import type { FileBody, Outgoing, OutgoingBody } from "../../../../src/whatsapp/outgoing.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { sampleFile, voiceNote } from "../../../support/sample_files.ts";
import { tempFolder } from "../../../support/temp_folder.ts";

/** Encodes, with an upload that keeps what it was given, unless another is given. */
async function encoded(
  body: OutgoingBody,
  { manner, ...others }: Partial<Pick<EncodeTools, "inspect" | "upload">> & Pick<Outgoing, "manner"> = {},
): Promise<{ message: proto.IMessage; uploads: Parameters<Upload>[0][] }> {
  const uploads: Parameters<Upload>[0][] = [];
  const message = await encode({ body, manner }, {
    chat: "34600111222@s.whatsapp.net",
    me: "34600000001@s.whatsapp.net",
    mentioned: (jids) => Promise.resolve([...jids]),
    timer: null,
    original: () => Promise.resolve(null),
    source: () => Promise.resolve(null),
    runtime: testRuntime(),
    signal: new AbortController().signal,
    inspect: fileFacts,
    upload: (file) => {
      uploads.push(file);
      return Promise.resolve({ url: "https://media.example/x", directPath: "/v/x" });
    },
    ...others,
  });
  return { message, uploads };
}

async function withFile(
  bytes: Uint8Array,
  body: Pick<FileBody, "kind" | "filename" | "mimetype"> & { caption?: string },
  check: (body: FileBody) => Promise<void>,
): Promise<void> {
  await using temp = await tempFolder();
  const path = `${temp.path}/stored`;
  await Deno.writeFile(path, bytes);
  await check({ caption: null, ...body, path, size: bytes.length });
}

async function bytesOf(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks);
}

Deno.test("a text is sent as it is, without a preview of its links", async () => {
  const { message, uploads } = await encoded({ kind: "text", text: "see https://10.0.0.1/ 👋\n" });
  assert.equal(message.extendedTextMessage?.text, "see https://10.0.0.1/ 👋\n");
  assert.equal(message.extendedTextMessage?.matchedText ?? null, null);
  assert.equal(message.messageContextInfo?.messageSecret?.length, 32);
  assert.deepEqual(uploads, []);
});

const KINDS: [
  title: string,
  body: Parameters<typeof withFile>[1],
  expected: (message: proto.IMessage) => unknown,
  fields: Record<string, unknown>,
][] = [
  ["an image", { kind: "image", filename: "a.jpg", mimetype: "image/jpeg", caption: "look" }, (m) => m.imageMessage, {
    caption: "look",
    mimetype: "image/jpeg",
  }],
  ["a video", { kind: "video", filename: "a.mp4", mimetype: "video/mp4", caption: "look" }, (m) => m.videoMessage, {
    caption: "look",
    mimetype: "video/mp4",
  }],
  ["an mp3", { kind: "audio", filename: "a.mp3", mimetype: "audio/mpeg", caption: "unheard" }, (m) => m.audioMessage, {
    ptt: null,
    mimetype: "audio/mpeg",
  }],
  ["an ogg of another codec", { kind: "audio", filename: "a.ogg", mimetype: "audio/ogg" }, (m) => m.audioMessage, {
    ptt: null,
    mimetype: "audio/ogg",
  }],
  [
    "a document",
    { kind: "document", filename: "Fatura 1.pdf", mimetype: "application/pdf", caption: "due" },
    (m) => m.documentMessage,
    {
      caption: "due",
      fileName: "Fatura 1.pdf",
      mimetype: "application/pdf",
      pageCount: 2,
    },
  ],
];

for (const [title, body, content, fields] of KINDS) {
  Deno.test(`${title} is sent as its kind, with its facts`, () =>
    withFile(Buffer.from("1 0 obj << /Type /Pages /Count 2 >> endobj"), body, async (body) => {
      const sent = content((await encoded(body)).message) as Record<string, unknown>;
      assert.ok(sent, "the message has the field of its kind");
      for (const [name, value] of Object.entries(fields)) assert.equal(sent[name], value, name);
      assert.equal(sent.directPath, "/v/x");
      assert.equal(Number(sent.fileLength), body.size);
    }));
}

Deno.test("Opus in an ogg is sent as a voice note", () =>
  withFile(voiceNote(1), { kind: "audio", filename: "a.ogg", mimetype: "audio/ogg" }, async (body) => {
    const { audioMessage } = (await encoded(body)).message;
    assert.equal(audioMessage!.ptt, true);
    assert.equal(audioMessage!.mimetype, "audio/ogg; codecs=opus");
  }));

for (const length of [0, 1, 15, 16, 4_096, 65_536, 65_537, 200_000]) {
  Deno.test(`a file of ${length} bytes is encrypted so that a receiver gets and verifies it`, () => {
    const plain = Buffer.from(Uint8Array.from({ length }, (_, i) => i * 7));
    return withFile(plain, { kind: "document", filename: "x", mimetype: "application/x" }, async (body) => {
      const { message, uploads: [upload] } = await encoded(body);
      const document = message.documentMessage!;
      const bytes = await bytesOf(upload!.content());
      assert.equal(bytes.length, upload!.encryptedLength);
      assert.ok(bytes.equals(await bytesOf(upload!.content())), "the same whenever it is asked for");
      assert.ok(createHash("sha256").update(bytes).digest().equals(document.fileEncSha256!));
      assert.ok(createHash("sha256").update(plain).digest().equals(document.fileSha256!));
      const { iv, cipherKey, macKey } = await getMediaKeys(document.mediaKey!, "document");
      const encrypted = bytes.subarray(0, -10);
      const mac = createHmac("sha256", macKey!).update(iv).update(encrypted).digest().subarray(0, 10);
      assert.ok(mac.equals(bytes.subarray(-10)));
      const decipher = createDecipheriv("aes-256-cbc", cipherKey, iv);
      assert.ok(Buffer.concat([decipher.update(encrypted), decipher.final()]).equals(plain));
    });
  });
}

Deno.test("a file that is not there is an error before anything is uploaded", async () => {
  const body: OutgoingBody = {
    kind: "document",
    path: "/nowhere/x",
    size: 1,
    filename: "x",
    mimetype: "a/b",
    caption: null,
  };
  await assert.rejects(encoded(body));
});

Deno.test("a picture whose inspection was given up is inspected again before it goes out; one that cannot be read is not", () =>
  withFile(sampleFile("png"), { kind: "image", filename: "a.png", mimetype: "image/png" }, async (body) => {
    let asked = 0;
    const once = (facts: FileFacts | null) => () => Promise.resolve(asked++ === 0 ? facts : { width: 3, height: 2 });
    const { imageMessage } = (await encoded(body, { inspect: once(null) })).message;
    assert.deepEqual([imageMessage!.width, imageMessage!.height, asked], [3, 2, 2]);
    asked = 0;
    assert.equal((await encoded(body, { inspect: once({}) })).message.imageMessage!.width ?? null, null);
    assert.equal(asked, 1);
  }));

Deno.test("a text leaves with the small picture of its link where the large one cannot be uploaded", async () => {
  const preview = {
    url: "https://a.example",
    title: "A",
    description: null,
    picture: new Uint8Array(sampleFile("png")),
  };
  const text: OutgoingBody = { kind: "text", text: "see https://a.example" };
  const whole = (await encoded(text, { manner: { preview } })).message.extendedTextMessage!;
  assert.deepEqual([whole.thumbnailDirectPath, whole.thumbnailSha256?.length], ["/v/x", 32]);
  const upload = () => Promise.reject(new UploadFailed("no host"));
  const { extendedTextMessage: small } = (await encoded(text, { manner: { preview }, upload })).message;
  assert.deepEqual([small!.title, small!.thumbnailDirectPath ?? null], ["A", null]);
  assert.ok(small!.jpegThumbnail!.length > 0);
});
