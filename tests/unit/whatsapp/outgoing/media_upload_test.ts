import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createDecipheriv, createHash, randomBytes } from "node:crypto";
import { getMediaKeys } from "@whiskeysockets/baileys";
import { systemClock, systemRandom } from "../../../../src/runtime.ts";
import { makeMediaHost } from "../../../../src/whatsapp/baileys/media_host.ts";
import { encryptFile } from "../../../../src/whatsapp/baileys/outgoing/media_upload.ts";
import { tempFolder } from "../../../support/temp_folder.ts";

const CHUNK = new Uint8Array(64 * 1024);
const CHUNKS = 32;
const NEVER = new AbortController().signal;

/** Reads the request's head and `bytes` more, at least. */
async function take(connection: Deno.Conn, bytes: number): Promise<void> {
  const buffer = new Uint8Array(CHUNK.length);
  for (let left = bytes; left > 0;) left -= await connection.read(buffer) ?? left;
}

/** Posts a file to a host that treats its one connection so; `content` may fail. */
async function post(
  serve: (connection: Deno.Conn) => Promise<void>,
  content: () => AsyncGenerator<Uint8Array> = async function* () {
    for (let i = 0; i < CHUNKS; i++) yield CHUNK;
  },
): Promise<{ status: number; body: string }> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const served = listener.accept().then(async (connection) => {
    await serve(connection);
    connection.close();
  });
  const mediaUrl = `http://127.0.0.1:${listener.addr.port}`;
  const host = makeMediaHost({ mediaUrl, ca: null }, systemClock);
  try {
    const file = { content: content(), length: CHUNKS * CHUNK.length };
    return await host.post(new URL(`${mediaUrl}/mms/image/x`), file, NEVER);
  } finally {
    await served;
  }
}

const text = (connection: Deno.Conn, answer: string) => connection.write(new TextEncoder().encode(answer));

Deno.test("a file is posted whole, and the host's answer is given", async () => {
  const answer = await post(async (connection) => {
    await take(connection, CHUNKS * CHUNK.length);
    await text(connection, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
  });
  assert.deepEqual(answer, { status: 200, body: "{}" });
});

Deno.test("a host that refuses early is heard, though the file is still on its way", async () => {
  const answer = await post(async (connection) => {
    await take(connection, 1);
    await text(connection, "HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno");
  });
  assert.deepEqual(answer, { status: 401, body: "no" });
});

for (
  const [when, serve] of [
    ["while the file is on its way", (connection) => take(connection, 1)],
    ["before it has answered", (connection) => take(connection, CHUNKS * CHUNK.length)],
    ["within its answer", async (connection) => {
      await take(connection, CHUNKS * CHUNK.length);
      await text(connection, 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"a"');
    }],
  ] satisfies [string, (connection: Deno.Conn) => Promise<void>][]
) {
  Deno.test(`a host that hangs up ${when} fails the upload, and nothing else`, async () => {
    await assert.rejects(post(serve), { name: "EgressError" });
  });
}

Deno.test("a file that cannot be read any more ends the upload at once", async () => {
  const waits = async (connection: Deno.Conn) => {
    const buffer = new Uint8Array(CHUNK.length);
    while (await connection.read(buffer) !== null);
  };
  async function* content() {
    yield CHUNK;
    throw new Error("the disk is gone");
  }
  await assert.rejects(post(waits, content), (error: Error) => (error.cause as Error).message === "the disk is gone");
});

// Files as they are uploaded: encrypted on the way, the same each time, whatever their size.

const MAC_BYTES = 10;

for (const size of [0, 1, 13, 15, 16, 17, 65_536, 65_537, 200_000]) {
  Deno.test(`a file of ${size} bytes is encrypted twice the same, in pieces of which none is empty`, async () => {
    await using temp = await tempFolder();
    const file = randomBytes(size);
    await Deno.writeFile(`${temp.path}/file`, file);
    const encrypted = await encryptFile(`${temp.path}/file`, "document", systemRandom);
    const [pieces, again] = [
      await Array.fromAsync(encrypted.content()),
      await Array.fromAsync(encrypted.content()),
    ];
    assert.ok(pieces.every((piece) => piece.length > 0));
    const upload = Buffer.concat(pieces);
    assert.deepEqual(Buffer.concat(again), upload);
    assert.deepEqual([encrypted.fileLength, encrypted.encryptedLength], [size, upload.length]);
    assert.deepEqual(Buffer.from(encrypted.fileSha256), createHash("sha256").update(file).digest());
    assert.deepEqual(Buffer.from(encrypted.fileEncSha256), createHash("sha256").update(upload).digest());
    const { iv, cipherKey } = await getMediaKeys(encrypted.mediaKey, "document");
    const decipher = createDecipheriv("aes-256-cbc", cipherKey, iv);
    const plain = Buffer.concat([decipher.update(upload.subarray(0, -MAC_BYTES)), decipher.final()]);
    assert.deepEqual(plain, Buffer.from(file));
  });
}
