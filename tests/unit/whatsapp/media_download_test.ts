/** Files are decrypted and verified as they stream, from the network's host and no other. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createCipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getMediaKeys, type WAMessage } from "@whiskeysockets/baileys";
import { repairCiphers } from "../../../src/repair_ciphers.ts";
import { incomingMedia } from "../../../src/whatsapp/baileys/incoming_media.ts";
import { downloadMedia, MediaGone } from "../../../src/whatsapp/baileys/media_download.ts";
import { makeMediaHost } from "../../../src/whatsapp/baileys/media_host.ts";
import { MediaUnavailable } from "../../../src/whatsapp/connection.ts";
import { ManualClock } from "../../support/runtime.ts";

repairCiphers();

const PLAIN = Buffer.from("a picture of a dog ".repeat(10_000));

/** A file as a sender uploads it, and what its message says of it. */
async function uploaded() {
  const mediaKey = randomBytes(32);
  const { iv, cipherKey, macKey } = await getMediaKeys(mediaKey, "image");
  const cipher = createCipheriv("aes-256-cbc", cipherKey, iv);
  const body = Buffer.concat([cipher.update(PLAIN), cipher.final()]);
  const mac = createHmac("sha256", macKey!).update(iv).update(body).digest().subarray(0, 10);
  const bytes = Buffer.concat([body, mac]);
  const file = {
    directPath: "/v/t62/file?ccb=1&oh=2",
    url: "https://evil.example/v/other",
    mediaKey,
    fileSha256: createHash("sha256").update(PLAIN).digest(),
    fileEncSha256: createHash("sha256").update(bytes).digest(),
    fileLength: PLAIN.length,
    mimetype: "image/jpeg",
  };
  return { file, bytes };
}

/** A media host on loopback that answers each path with what it is given. */
async function withHost(
  play: (host: {
    url: string;
    answers: Map<string, { status: number; bytes?: Buffer }>;
    asked: string[];
  }) => Promise<void>,
): Promise<void> {
  const answers = new Map<string, { status: number; bytes?: Buffer }>();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    const { status, bytes } = answers.get(request.url ?? "") ?? { status: 404 };
    response.writeHead(status).end(bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await play({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, answers, asked });
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

const signal = () => new AbortController().signal;

async function read(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  return Buffer.from(await new Response(stream).arrayBuffer());
}

Deno.test("a file is fetched from the host of the settings, whatever the message's address says, and decrypted", () =>
  withHost(async ({ url, answers, asked }) => {
    const { file, bytes } = await uploaded();
    answers.set(file.directPath, { status: 200, bytes });
    const host = makeMediaHost({ mediaUrl: url, ca: null });
    const plain = await read(await downloadMedia(host, { kind: "image", file }, signal()));
    assert.ok(plain.equals(PLAIN));
    assert.deepEqual(asked, [file.directPath]);
  }));

Deno.test("without a setting every address leads to the network's own host", () => {
  const host = makeMediaHost({ mediaUrl: null, ca: null });
  for (
    const file of [{ directPath: "/v/a?b=1" }, { url: "http://169.254.169.254/v/a?b=1" }, {
      directPath: "//evil.example/v/a?b=1",
    }]
  ) {
    assert.equal(host.addressOf(file)?.href, "https://mmg.whatsapp.net/v/a?b=1");
  }
  assert.equal(host.addressOf({}), null);
});

const ALTERED: [title: string, alter: (bytes: Buffer) => Buffer][] = [
  ["a changed byte", (bytes) => Buffer.from(bytes.map((byte, i) => i === 5_000 ? byte ^ 1 : byte))],
  ["another MAC", (bytes) => Buffer.from(bytes.map((byte, i) => i === bytes.length - 1 ? byte ^ 1 : byte))],
  ["a file cut short", (bytes) => bytes.subarray(0, 16_010)],
  ["an empty file", () => Buffer.alloc(0)],
];

for (const [title, alter] of ALTERED) {
  Deno.test(`${title} is noticed before the stream ends well`, () =>
    withHost(async ({ url, answers }) => {
      const { file, bytes } = await uploaded();
      answers.set(file.directPath, { status: 200, bytes: alter(bytes) });
      const stream = await downloadMedia(makeMediaHost({ mediaUrl: url, ca: null }), { kind: "image", file }, signal());
      await assert.rejects(read(stream), MediaUnavailable);
    }));
}

Deno.test("a file that is gone, a host in trouble and a message without a key are told apart", () =>
  withHost(async ({ url, answers }) => {
    const { file } = await uploaded();
    const host = makeMediaHost({ mediaUrl: url, ca: null });
    const download = (changes: Partial<typeof file>) =>
      downloadMedia(host, { kind: "image", file: { ...file, ...changes } }, signal());
    await assert.rejects(download({}), MediaGone);
    answers.set(file.directPath, { status: 500 });
    await assert.rejects(download({}), (error) => error instanceof MediaUnavailable && !(error instanceof MediaGone));
    await assert.rejects(download({ mediaKey: Buffer.alloc(0) }), MediaUnavailable);
    const nowhere = makeMediaHost({ mediaUrl: "http://127.0.0.1:1", ca: null });
    await assert.rejects(downloadMedia(nowhere, { kind: "image", file }, signal()), MediaUnavailable);
  }));

Deno.test("a download ends when its caller gives up", () =>
  withHost(async ({ url, answers }) => {
    const { file, bytes } = await uploaded();
    answers.set(file.directPath, { status: 200, bytes });
    const abort = new AbortController();
    abort.abort();
    const download = downloadMedia(makeMediaHost({ mediaUrl: url, ca: null }), { kind: "image", file }, abort.signal);
    await assert.rejects(download, MediaUnavailable);
  }));

Deno.test("a file that is gone is asked for once more, and then fetched from its new place", () =>
  withHost(async ({ url, answers, asked }) => {
    const { file, bytes } = await uploaded();
    answers.set("/v/new", { status: 200, bytes });
    const message = { key: { id: "M1" }, message: { imageMessage: file } } as WAMessage;
    const host = makeMediaHost({ mediaUrl: url, ca: null });
    const updateMediaMessage = (message: WAMessage) => {
      message.message!.imageMessage!.directPath = "/v/new";
      return Promise.resolve(message);
    };
    const source = { host, runtime: { clock: new ManualClock() }, socket: () => ({ updateMediaMessage }) };
    const plain = await read(await incomingMedia(source, message, { kind: "image", file }).download(signal()));
    assert.ok(plain.equals(PLAIN));
    assert.deepEqual(asked, ["/v/t62/file?ccb=1&oh=2", "/v/new"]);
  }));

Deno.test("a phone that does not answer, or an offline line, leaves the file unavailable", () =>
  withHost(async ({ url }) => {
    const { file } = await uploaded();
    const message = { key: { id: "M1" }, message: { imageMessage: file } } as WAMessage;
    const clock = new ManualClock();
    const host = makeMediaHost({ mediaUrl: url, ca: null });
    const asked = Promise.withResolvers<void>();
    const updateMediaMessage = () => {
      asked.resolve();
      return new Promise<never>(() => {});
    };
    const source = { host, runtime: { clock }, socket: () => ({ updateMediaMessage }) };
    const download = incomingMedia(source, message, { kind: "image", file }).download(signal());
    const failed = assert.rejects(download, MediaUnavailable);
    await asked.promise;
    await clock.advance(60_000);
    await failed;
    const offline = { ...source, socket: () => null };
    await assert.rejects(incomingMedia(offline, message, { kind: "image", file }).download(signal()), MediaUnavailable);
  }));
