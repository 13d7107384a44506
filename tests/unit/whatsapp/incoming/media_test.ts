/** Files are fetched from the network's host and no other, and decrypted as they stream. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { downloadMedia } from "../../../../src/whatsapp/baileys/incoming/media.ts";
import { makeMediaHost } from "../../../../src/whatsapp/baileys/media_host.ts";
import { MediaTrouble } from "../../../../src/whatsapp/incoming.ts";
import { ManualClock } from "../../../support/runtime.ts";
import { fallsSilent, mediaServer, uploaded, whole } from "../../../support/media_server.ts";

const PLAIN = Buffer.from("a picture of a dog ".repeat(10_000));

const NEVER = new AbortController().signal;

async function read(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  return Buffer.from(await new Response(stream).arrayBuffer());
}

Deno.test("a file is fetched from the host of the settings, whatever the message's address says, and decrypted", async () => {
  const { file, bytes } = await uploaded(PLAIN);
  const server = mediaServer(() => whole(bytes));
  try {
    const host = makeMediaHost({ mediaUrl: server.url, ca: null }, new ManualClock());
    const plain = await read(await downloadMedia(host, { kind: "image", file }, NEVER));
    assert.ok(plain.equals(PLAIN));
    assert.deepEqual(server.asked, [file.directPath]);
  } finally {
    await server.close();
  }
});

Deno.test("without a setting every address leads to the network's own host", () => {
  const host = makeMediaHost({ mediaUrl: null, ca: null }, new ManualClock());
  for (
    const file of [{ directPath: "/v/a?b=1" }, { url: "http://169.254.169.254/v/a?b=1" }, {
      directPath: "//evil.example/v/a?b=1",
    }]
  ) {
    assert.equal(host.addressOf(file)?.href, "https://mmg.whatsapp.net/v/a?b=1");
  }
  assert.equal(host.addressOf({}), null);
});

Deno.test("an address without a path leads nowhere, and to no other host", () => {
  const host = makeMediaHost({ mediaUrl: null, ca: null }, new ManualClock());
  for (const directPath of ["x:@evil.example/v/a", "x:.evil.example/v/a", "data:,a", "x::99999", "http://["]) {
    assert.equal(host.addressOf({ directPath }), null, directPath);
  }
});

Deno.test("a download ends when its caller gives up, before the host is asked", async () => {
  const { file, bytes } = await uploaded(PLAIN);
  const server = mediaServer(() => whole(bytes));
  try {
    const host = makeMediaHost({ mediaUrl: server.url, ca: null }, new ManualClock());
    await assert.rejects(downloadMedia(host, { kind: "image", file }, AbortSignal.abort()), MediaTrouble);
    assert.deepEqual(server.asked, []);
  } finally {
    await server.close();
  }
});

Deno.test("a download ends when its caller gives up in the middle", async () => {
  const { file, bytes } = await uploaded(PLAIN);
  const abort = new AbortController();
  const server = mediaServer(() => fallsSilent(bytes, () => abort.abort()));
  try {
    const host = makeMediaHost({ mediaUrl: server.url, ca: null }, new ManualClock());
    const download = downloadMedia(host, { kind: "image", file }, abort.signal).then(read);
    await assert.rejects(download, MediaTrouble);
  } finally {
    await server.close();
  }
});

Deno.test("a host that falls silent in the middle is given up after a minute, as trouble that may pass", async () => {
  const { file, bytes } = await uploaded(PLAIN);
  const clock = new ManualClock();
  const begun = Promise.withResolvers<void>();
  const server = mediaServer(() => fallsSilent(bytes, begun.resolve));
  try {
    const host = makeMediaHost({ mediaUrl: server.url, ca: null }, clock);
    const download = downloadMedia(host, { kind: "image", file }, NEVER).then(read);
    const failed = assert.rejects(download, MediaTrouble);
    await begun.promise;
    await clock.advance(60_000);
    await clock.advance(60_000);
    await failed;
  } finally {
    await server.close();
  }
});
