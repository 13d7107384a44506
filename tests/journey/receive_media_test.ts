/** Files that come in: by their link, whole, in part, only with the right signature, and never as a page of ours. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { systemRandom } from "../../src/runtime.ts";
import { startGatewayHere } from "../support/gateway_here.ts";
import type { RunningGateway } from "../support/gateway_process.ts";
import { LeapClock } from "../support/leap_clock.ts";
import { onStage, openStageWith, type Stage, withStage } from "../support/stage.ts";
import { type Delivered, subscribe, type Subscriber } from "../support/subscriber.ts";

const LINE = "4915200000002";
const ANA = "4917000000001";

const KINDS = [
  { kind: "image", mimetype: "image/jpeg", type: "image/jpeg", shown: true },
  { kind: "video", mimetype: "video/mp4", type: "video/mp4", shown: true },
  { kind: "audio", mimetype: "audio/ogg; codecs=opus", type: "audio/ogg; codecs=opus", shown: true },
  { kind: "sticker", mimetype: "image/webp", type: "image/webp", shown: true },
  { kind: "document", mimetype: "application/pdf", type: "application/pdf", shown: false, filename: "März 2026.pdf" },
  // What a browser could run is named as plain bytes, whatever its sender called it.
  { kind: "document", mimetype: "text/html", type: "application/octet-stream", shown: false, filename: "evil.html" },
  { kind: "document", mimetype: "image/svg+xml", type: "application/octet-stream", shown: false, filename: "evil.svg" },
] as const;

onStage("files of every kind are downloaded by their link, whole and in part", async (stage) => {
  await stage.addPhone(ANA);
  await stage.linkLine(LINE);
  const client = await subscribe(stage, { events: ["message.received"] });
  for (const { shown, type, ...file } of KINDS) {
    const what = `${file.kind} ${file.mimetype}`;
    const bytes = systemRandom.bytes(300_000 + systemRandom.between(0, 40));
    const { data } = await sendFile(stage, client, { ...file, bytes });
    assert.equal(data.media.size, bytes.length, what);
    assert.equal(data.media.mimetype, file.mimetype);
    if ("filename" in file) assert.equal(data.media.filename, file.filename);

    const whole = await fetch(data.media.url);
    assert.equal(whole.status, 200);
    assert.equal(sha256(new Uint8Array(await whole.arrayBuffer())), sha256(bytes), what);
    assert.equal(whole.headers.get("content-type"), type);
    assert.equal(whole.headers.get("content-length"), String(bytes.length));
    assert.equal(whole.headers.get("x-content-type-options"), "nosniff");
    assert.match(whole.headers.get("content-security-policy")!, /default-src 'none'.*sandbox/);
    assert.match(whole.headers.get("content-disposition")!, shown ? /^inline;/ : /^attachment;/);

    for (
      const [range, from, to] of [
        ["bytes=0-0", 0, 1],
        ["bytes=100000-199999", 100_000, 200_000],
        ["bytes=299990-", 299_990, bytes.length],
        ["bytes=-17", bytes.length - 17, bytes.length],
      ] as const
    ) {
      const part = await fetch(data.media.url, { headers: { range } });
      assert.equal(part.status, 206, range);
      assert.equal(part.headers.get("content-range"), `bytes ${from}-${to - 1}/${bytes.length}`);
      assert.equal(sha256(new Uint8Array(await part.arrayBuffer())), sha256(bytes.subarray(from, to)), range);
    }
    const beyond = await fetch(data.media.url, { headers: { range: `bytes=${bytes.length}-` } });
    assert.equal(beyond.status, 416);
    assert.equal(beyond.headers.get("content-range"), `bytes */${bytes.length}`);
    await beyond.body?.cancel();
  }
  await client.end();
});

onStage("a link that is forged, altered or of another file is refused, and lives for 24 hours", async (stage) => {
  await stage.addPhone(ANA);
  await stage.linkLine(LINE);
  const client = await subscribe(stage, { events: ["message.received"] });
  const before = Date.now();
  const [one, other] = [
    await sendFile(stage, client, { kind: "image", bytes: Buffer.from("the first file") }),
    await sendFile(stage, client, { kind: "image", bytes: Buffer.from("the second file") }),
  ];
  const url = new URL(one.data.media.url);
  const expires = Number(url.searchParams.get("expires")) * 1000;
  assert.ok(
    expires >= before + 24 * 3_600_000 && expires <= Date.now() + 24 * 3_600_000 + 1_000,
    "24 h, to the second",
  );

  const signature = url.searchParams.get("signature")!;
  const altered = (change: (url: URL) => void) => {
    const link = new URL(url);
    change(link);
    return link;
  };
  const refused: [title: string, link: URL][] = [
    ["no signature", altered((link) => link.searchParams.delete("signature"))],
    ["an altered signature", altered((link) => link.searchParams.set("signature", flipped(signature)))],
    ["a shortened signature", altered((link) => link.searchParams.set("signature", signature.slice(0, -1)))],
    ["a later end", altered((link) => link.searchParams.set("expires", String(expires / 1000 + 1)))],
    ["an earlier end", altered((link) => link.searchParams.set("expires", String(expires / 1000 - 1)))],
    ["no end", altered((link) => link.searchParams.delete("expires"))],
    ["another file", altered((link) => link.pathname = new URL(other.data.media.url).pathname)],
    ["a path out of the folder", altered((link) => link.pathname = "/media/..%2f..%2fsecret.key")],
    ["a file that there is not", altered((link) => link.pathname = "/media/med_00000000000000000000000000")],
  ];
  for (const [title, link] of refused) {
    const response = await fetch(link);
    assert.equal(response.status, 404, title);
    assert.equal(JSON.parse(await response.text()).code, "not_found", title);
  }
  const good = await fetch(url);
  assert.equal(await good.text(), "the first file");
  await client.end();
});

Deno.test("a link works for 24 hours to the second", async () => {
  const clock = new LeapClock();
  await withStage(() => openStageWith((env) => startGatewayHere(env, { clock })), async (stage) => {
    await stage.addPhone(ANA);
    await stage.linkLine(LINE);
    const client = await subscribe(stage, { events: ["message.received"] });
    const { data } = await sendFile(stage, client, { kind: "image", bytes: Buffer.from("a day's picture") });
    const expires = Number(new URL(data.media.url).searchParams.get("expires")) * 1000;
    // A minute before, as real time passes too; the unit tests hold the very second.
    clock.leap(expires - clock.now() - 60_000);
    assert.equal(await (await fetch(data.media.url)).text(), "a day's picture");
    clock.leap(expires - clock.now());
    const late = await fetch(data.media.url);
    assert.equal(late.status, 404);
    await late.body?.cancel();
    await client.receiver.close();
  });
});

onStage(
  "a file that the network has lost is uploaded again, and one that nobody has holds nothing up",
  async (stage) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    const client = await subscribe(stage, { events: ["message.received"] });
    await stage.api.call("POST", `/sessions/${line.sessionId}/disconnect`);
    await stage.sessionStatus(line, "disconnected");
    const bytes = systemRandom.bytes(50_000);
    const { id: lost } = await writes(stage, { file: Buffer.from(bytes).toString("base64"), kind: "image" });
    await stage.inbox(LINE);
    for (const path of stage.network.media.paths()) await stage.network.media.remove(path);
    const key = Buffer.alloc(32, 7).toString("base64");
    const nowhere = { directPath: "/v/t62.7118-24/nowhere", mediaKey: key, fileSha256: key, fileEncSha256: key };
    const { id: gone } = await writes(stage, {
      message: { documentMessage: { ...nowhere, fileLength: 5, fileName: "gone.pdf", mimetype: "application/pdf" } },
    });
    const { id: after } = await writes(stage, { text: "did you get the files?" });

    await stage.api.call("POST", `/sessions/${line.sessionId}/reconnect`);
    const delivered = await client.count(3);
    assert.deepEqual(delivered.map(({ data }) => data.messageId), [lost, gone, after], "in the order of the chat");
    const again = await fetch(delivered[0]!.data.media.url);
    assert.equal(sha256(new Uint8Array(await again.arrayBuffer())), sha256(bytes));
    const { reason, ...media } = delivered[1]!.data.media;
    assert.deepEqual(media, { url: null, mimetype: "application/pdf", size: 5, filename: "gone.pdf" });
    assert.match(reason, /does not have the file/);
    await client.end();
  },
);

async function sendFile(
  stage: Stage<RunningGateway>,
  client: Subscriber,
  { bytes, ...file }: { kind: string; bytes: Uint8Array; mimetype?: string; filename?: string },
): Promise<Delivered> {
  const { id } = await writes(stage, { file: Buffer.from(bytes).toString("base64"), ...file });
  return await client.event(`the ${file.kind}`, ({ data }) => data.messageId === id);
}

function writes(stage: Stage<RunningGateway>, message: Record<string, unknown>): Promise<{ id: string }> {
  return stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, ...message });
}

function flipped(hex: string): string {
  return (hex[0] === "0" ? "1" : "0") + hex.slice(1);
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
