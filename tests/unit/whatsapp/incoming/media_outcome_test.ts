/** What the media host does decides whether another try makes sense: trouble passes, a file that is gone does not. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { assertMediaContent, type proto, type WAMessage } from "@whiskeysockets/baileys";
import { contentOf, type MediaContent } from "../../../../src/whatsapp/baileys/incoming/content.ts";
import { incomingMedia } from "../../../../src/whatsapp/baileys/incoming/media.ts";
import { makeMediaHost } from "../../../../src/whatsapp/baileys/media_host.ts";
import { MediaTrouble, MediaUnavailable } from "../../../../src/whatsapp/incoming.ts";
import {
  cutBetweenChunks,
  cutShort,
  dropped,
  type MediaAnswer,
  mediaServer,
  status,
  uploaded,
  whole,
  withoutLength,
} from "../../../support/media_server.ts";
import { ManualClock } from "../../../support/runtime.ts";

const PLAIN = Buffer.from("a picture of a dog ".repeat(5_000));
const { file: FILE, bytes: BYTES } = await uploaded(PLAIN);
type File = typeof FILE;
type Ask = (message: WAMessage) => Promise<WAMessage>;

const changed = (at: number) => Buffer.from(BYTES.map((byte, i) => i === at ? byte ^ 1 : byte));
/** As the library tells failures. */
const boom = (statusCode: number) => Object.assign(new Error("failed"), { output: { statusCode } });

/** The file of a message, read to its end, from a host that answers so; `ask` null: the line is offline. */
async function download(
  answer: (path: string) => MediaAnswer,
  { file = FILE, message = { imageMessage: file }, ask = null, clock = new ManualClock() }: {
    file?: File;
    message?: proto.IMessage;
    ask?: Ask | null;
    clock?: ManualClock;
  } = {},
): Promise<Buffer> {
  const server = mediaServer(answer);
  try {
    const host = makeMediaHost({ mediaUrl: server.url, ca: null }, clock);
    const socket = () => ask && { updateMediaMessage: ask };
    const { media } = contentOf(message)!;
    const incoming = incomingMedia({ host, runtime: { clock }, socket }, { key: { id: "M1" }, message }, media!);
    const stream = await incoming.download(new AbortController().signal);
    return Buffer.from(await new Response(stream).arrayBuffer());
  } finally {
    await server.close();
  }
}

const ANSWERS: [title: string, answer: MediaAnswer, outcome: typeof MediaTrouble | typeof MediaUnavailable][] = [
  ...[408, 425, 429, 500, 502, 503, 504, 599].map((code) =>
    [`an answer of ${code}`, status(code), MediaTrouble] as [string, MediaAnswer, typeof MediaTrouble]
  ),
  ["a connection that is dropped before the answer", dropped, MediaTrouble],
  ["a download that breaks off before its length", cutShort(BYTES), MediaTrouble],
  ["a download that breaks off between chunks", cutBetweenChunks(BYTES), MediaTrouble],
  ["a shorter file than the sender's, with no length told", withoutLength(BYTES.subarray(0, 16_010)), MediaTrouble],
  ["a shorter file than the sender's", whole(BYTES.subarray(0, 16_010)), MediaTrouble],
  ["an empty file", whole(new Uint8Array(0)), MediaTrouble],
  ["a whole file with a changed byte", whole(changed(5_000)), MediaUnavailable],
  ["a whole file with a changed byte, with no length told", withoutLength(changed(5_000)), MediaUnavailable],
  ["a whole file with another MAC", whole(changed(BYTES.length - 1)), MediaUnavailable],
  ["a whole file that does not decrypt", whole(changed(BYTES.length - 11)), MediaUnavailable],
  ["a longer file", whole(Buffer.concat([BYTES, Buffer.alloc(16)])), MediaUnavailable],
  ["an answer of 302", status(302), MediaUnavailable],
  ["an answer of 400", status(400), MediaUnavailable],
];

for (const [title, answer, outcome] of ANSWERS) {
  Deno.test(`${title} is ${outcome === MediaTrouble ? "trouble that may pass" : "final"}`, async () => {
    await assert.rejects(download(() => answer), outcome);
  });
}

Deno.test("a host that cannot be reached is trouble that may pass", async () => {
  const clock = new ManualClock();
  const host = makeMediaHost({ mediaUrl: "http://127.0.0.1:1", ca: null }, clock);
  const source = { host, runtime: { clock }, socket: () => null };
  const media = incomingMedia(source, { key: {} }, { kind: "image", file: FILE });
  await assert.rejects(media.download(new AbortController().signal), MediaTrouble);
});

Deno.test("a message that has no key or no place for its file is final", async () => {
  for (const change of [{ mediaKey: Buffer.alloc(0) }, { directPath: "", url: "" }]) {
    await assert.rejects(download(() => whole(BYTES), { file: { ...FILE, ...change } }), MediaUnavailable);
  }
});

Deno.test("a file without a length in its message is had as well, told or not by the host", async () => {
  const file = { ...FILE, fileLength: undefined as never };
  for (const answer of [whole(BYTES), withoutLength(BYTES)]) {
    assert.ok((await download(() => answer, { file })).equals(PLAIN));
  }
});

const ASKING: [title: string, ask: Ask | null, outcome: typeof MediaTrouble | typeof MediaUnavailable][] = [
  ["a line that is offline", null, MediaTrouble],
  ["a connection that closes meanwhile", () => Promise.reject(boom(428)), MediaTrouble],
  ["a request that cannot be sent", () => Promise.reject(new Error("the socket hung up")), MediaTrouble],
  ["a phone that does not have it either", () => Promise.reject(boom(404)), MediaUnavailable],
  ["a phone that cannot read the request", () => Promise.reject(boom(412)), MediaUnavailable],
  ["a phone that fails to upload it", () => Promise.reject(boom(418)), MediaUnavailable],
  ["a phone that uploads it to a place where it is not", (message) => Promise.resolve(message), MediaUnavailable],
];

for (const code of [403, 404, 410]) {
  for (const [title, ask, outcome] of ASKING) {
    Deno.test(`a file that is gone (${code}): ${title} is ${outcome === MediaTrouble ? "trouble" : "final"}`, async () => {
      await assert.rejects(download(() => status(code), { ask }), outcome);
    });
  }
}

Deno.test("a file that is gone: a phone that stays silent is final after 30 s", async () => {
  const clock = new ManualClock();
  const asked = Promise.withResolvers<void>();
  const ask = () => {
    asked.resolve();
    return new Promise<never>(() => {});
  };
  const failed = assert.rejects(download(() => status(404), { ask, clock }), MediaUnavailable);
  await asked.promise;
  await clock.advance(30_000);
  await failed;
});

const file = () => ({ ...FILE });
const KINDS: [title: string, message: () => proto.IMessage][] = [
  ["a picture", () => ({ imageMessage: file() })],
  ["a film that disappears", () => ({ ephemeralMessage: { message: { videoMessage: file() } } })],
  ["a round film", () => ({ ptvMessage: file() })],
  ["a picture that mentions a group", () => ({ groupMentionedMessage: { message: { imageMessage: file() } } })],
  ["a document for a bot", () => ({ botInvokeMessage: { message: { documentMessage: file() } } })],
  ["a sticker that moves", () => ({ lottieStickerMessage: { message: { stickerMessage: file() } } })],
  ["a sound in a question", () => ({ questionMessage: { message: { audioMessage: file() } } })],
];

for (const [title, make] of KINDS) {
  Deno.test(`${title} that is gone is asked for once more, and then fetched from its new place`, async () => {
    const message = make();
    const { kind } = contentOf(message)!.media!;
    const { file, bytes } = await uploaded(PLAIN, kind);
    Object.assign(contentOf(message)!.media!.file, file);
    // As the library does it: it finds the file in the message and writes the new place into it.
    const ask: Ask = (asked) => {
      assert.equal(asked.key.id, "M1");
      assertMediaContent(asked.message).directPath = "/v/new";
      return Promise.resolve(asked);
    };
    const answer = (path: string) => path === "/v/new" ? whole(bytes) : status(410);
    assert.ok((await download(answer, { message, ask })).equals(PLAIN));
  });
}

Deno.test("a document has the name that its sender gave, else its title, with the extension of its type", () => {
  const rows: [file: Partial<MediaContent>, filename: string | null][] = [
    [{ fileName: "scan", title: "Invoice", mimetype: "application/pdf" }, "scan"],
    [{ title: "Invoice", mimetype: "application/pdf" }, "Invoice.pdf"],
    [{ title: "Invoice 12.2026", mimetype: "application/pdf" }, "Invoice 12.2026.pdf"],
    [{ title: "photo.jpeg", mimetype: "image/jpg" }, "photo.jpeg"],
    [{ title: "drawing", mimetype: "application/x-odd" }, "drawing"],
    [{ title: "Invoice" }, "Invoice"],
    [{ fileName: "", title: "", mimetype: "application/pdf" }, null],
  ];
  const clock = new ManualClock();
  const host = makeMediaHost({ mediaUrl: "http://127.0.0.1:1", ca: null }, clock);
  const source = { host, runtime: { clock }, socket: () => null };
  for (const [file, filename] of rows) {
    const media = incomingMedia(source, { key: {} }, { kind: "document", file: file as MediaContent });
    assert.equal(media.filename, filename);
  }
  const picture = incomingMedia(source, { key: {} }, { kind: "image", file: { title: "x" } as MediaContent });
  assert.equal(picture.filename, null);
});
