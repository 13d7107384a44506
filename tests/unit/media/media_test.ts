import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { join } from "node:path";
import { makeSafeFetch } from "../../../src/egress/safe_fetch.ts";
import { readAllowList } from "../../../src/egress/vetting.ts";
import { Problem } from "../../../src/errors.ts";
import { openDiskMediaStore } from "../../../src/media/disk_store.ts";
import { makeFetchFile } from "../../../src/media/fetch_file.ts";
import { generatedFilename, safeFilename, safeMimetype } from "../../../src/media/filename.ts";
import { makeMediaIngest } from "../../../src/media/ingest.ts";
import { makeMediaLinks } from "../../../src/media/signed_link.ts";
import { makeServeFile, makeServeMedia, type ServeMedia } from "../../../src/media/serve.ts";
import { type FileRecord, mediaKeys } from "../../../src/media/rows.ts";
import { keepFile } from "../../../src/media/store.ts";
import { DiskShares, withFairWrites } from "../../../src/media/fair_shares.ts";
import { sweepMedia, sweepOrphans } from "../../../src/media/sweep.ts";
import { Change, type Kv, StoreError } from "../../../src/store/kv.ts";
import { type Incoming, type IncomingMedia, MediaUnavailable } from "../../../src/whatsapp/incoming.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { answering, Receiver } from "../../support/receiver.ts";
import { testRuntime } from "../../support/runtime.ts";
import { plainIncoming } from "../../support/incoming.ts";

const HOUR_MS = 3_600_000;
const KEY = new Uint8Array(32).fill(7);
const bytes = (text: string) => new TextEncoder().encode(text);
const streamOf = (...chunks: (string | Uint8Array)[]) =>
  ReadableStream.from(chunks.map((chunk) => typeof chunk === "string" ? bytes(chunk) : chunk)) as ReadableStream<
    Uint8Array
  >;
const sha256 = (content: string | Uint8Array) => createHash("sha256").update(content).digest("hex");
const BY = { accountId: "acc_1" };
const problem = (code: Problem["code"]) => (error: unknown) => error instanceof Problem && error.code === code;

async function stage() {
  const folder = await Deno.makeTempDir();
  const runtime = testRuntime();
  const kv = new MemoryKv();
  const media = await openDiskMediaStore(join(folder, "media"), runtime);
  const links = makeMediaLinks(() => "https://gateway.test", KEY);
  const serve = makeServeMedia({ kv, serveFile: makeServeFile({ media, runtime }), links, runtime });
  return {
    folder,
    runtime,
    kv,
    media,
    links,
    serve,
    clock: runtime.clock,
    ingest: makeMediaIngest({ media: withFairWrites(media, runtime.clock), links, runtime }),
    shares: new DiskShares(),
    /** A file with its row, as after the commit that names it. */
    async kept(content: string, change: Partial<FileRecord> = {}): Promise<FileRecord> {
      const { fileId: id, size, sha256 } = await media.write(streamOf(content), 1_000_000);
      const now = runtime.clock.now();
      const file: FileRecord = {
        id,
        size,
        sha256,
        accountId: "acc_1",
        mimetype: "application/pdf",
        filename: "invoice.pdf",
        expiresAt: now + 24 * HOUR_MS,
        ...change,
      };
      const keeping = new Change();
      keepFile(keeping, file);
      await kv.commit(keeping);
      return file;
    },
    async onDisk(): Promise<string[]> {
      const names: string[] = [];
      for await (const files of media.folders()) names.push(...files.map(({ path }) => path.split("/").at(-1)!));
      return names.sort();
    },
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

type MediaRequest = Parameters<ServeMedia>[0];

function requestOf(link: string, change: Partial<MediaRequest> = {}): MediaRequest {
  const url = new URL(link);
  return {
    fileId: url.pathname.replace("/media/", ""),
    expires: url.searchParams.get("expires") ?? "",
    signature: url.searchParams.get("signature") ?? "",
    method: "GET",
    range: null,
    ifRange: null,
    ifNoneMatch: null,
    ...change,
  };
}

Deno.test("a file is streamed to disk, hashed and counted, under a name of its own, for its owner only", async () => {
  await using s = await stage();
  const written = await s.media.write(streamOf("one ", "two ", "three"), 13);
  assert.deepEqual(written, { fileId: written.fileId, size: 13, sha256: sha256("one two three") });
  assert.equal(await Deno.readTextFile(s.media.path(written.fileId)), "one two three");
  assert.equal((await Deno.stat(s.media.path(written.fileId))).mode! & 0o777, 0o600);
  await s.media.remove(written.fileId);
  await s.media.remove(written.fileId);
  assert.deepEqual(await s.onDisk(), []);
});

Deno.test("past the cap, and when the content breaks off, nothing stays on disk", async () => {
  await using s = await stage();
  await assert.rejects(s.media.write(streamOf("12345", "6"), 5), problem("payload_too_large"));
  const broken = ReadableStream.from((async function* () {
    yield bytes("123");
    throw new Error("the sender has gone");
  })());
  await assert.rejects(s.media.write(broken, 100), /the sender has gone/);
  assert.deepEqual(await s.onDisk(), []);
});

Deno.test("a link serves its file until its second, and not after", async () => {
  await using s = await stage();
  const file = await s.kept("the invoice");
  const request = requestOf(s.links.sign(file.id, file.expiresAt!));
  await s.clock.advance(24 * HOUR_MS - 1_000);
  const response = await s.serve(request);
  assert.equal(response.status, 200);
  assert.equal(await response.text(), "the invoice");
  await s.clock.advance(999);
  await (await s.serve(request)).body?.cancel();
  for (const step of [1, 1_000, HOUR_MS]) {
    await s.clock.advance(step);
    await assert.rejects(s.serve(request), problem("not_found"));
  }
});

Deno.test("forged, altered and foreign links look like links to nothing", async () => {
  await using s = await stage();
  const file = await s.kept("mine");
  const other = await s.kept("other");
  const request = requestOf(s.links.sign(file.id, file.expiresAt!));
  const foreign = requestOf(
    makeMediaLinks(() => "https://gateway.test", new Uint8Array(32)).sign(file.id, file.expiresAt!),
  );
  const flipped = request.signature.replace(/.$/, (c) => c === "0" ? "1" : "0");
  const wrong: MediaRequest[] = [
    foreign,
    { ...request, signature: flipped },
    { ...request, signature: "" },
    { ...request, signature: request.signature.slice(0, 62) },
    { ...request, signature: request.signature.toUpperCase() + "0" },
    { ...request, expires: String(Number(request.expires) + 1) },
    { ...request, expires: "" },
    { ...request, expires: "9".repeat(30) },
    { ...request, expires: ` ${request.expires}` },
    { ...request, fileId: other.id },
    { ...request, fileId: "../../store.sqlite" },
    { ...request, fileId: "" },
  ];
  for (const bad of wrong) await assert.rejects(s.serve(bad), problem("not_found"), JSON.stringify(bad));
  await (await s.serve(request)).body?.cancel();
  await s.media.remove(file.id);
  await assert.rejects(s.serve(request), problem("not_found"));
});

Deno.test("the file of a queued message has no link", async () => {
  await using s = await stage();
  const file = await s.kept("outgoing", { expiresAt: null });
  await assert.rejects(s.serve(requestOf(s.links.sign(file.id, s.clock.now() + HOUR_MS))), problem("not_found"));
});

const RANGES: [string, number, string, string | null][] = [
  ["bytes=0-3", 206, "0123", "bytes 0-3/10"],
  ["bytes=4-", 206, "456789", "bytes 4-9/10"],
  ["bytes=-3", 206, "789", "bytes 7-9/10"],
  ["bytes=-99", 206, "0123456789", "bytes 0-9/10"],
  ["bytes=8-99", 206, "89", "bytes 8-9/10"],
  ["bytes=3-2", 200, "0123456789", null],
  ["bytes=0-1,4-5", 200, "0123456789", null],
  ["lines=0-1", 200, "0123456789", null],
  ["bytes=-", 200, "0123456789", null],
];

for (const [range, status, content, header] of RANGES) {
  Deno.test(`the range "${range}" of ten bytes gives ${status} and "${content}"`, async () => {
    await using s = await stage();
    const file = await s.kept("0123456789");
    const response = await s.serve(requestOf(s.links.sign(file.id, file.expiresAt!), { range }));
    assert.equal(response.status, status);
    assert.equal(await response.text(), content);
    assert.equal(response.headers.get("content-range"), header);
    assert.equal(response.headers.get("content-length"), String(content.length));
  });
}

for (const range of ["bytes=10-", "bytes=-0"]) {
  Deno.test(`the range "${range}" of ten bytes is refused`, async () => {
    await using s = await stage();
    const file = await s.kept("0123456789");
    await assert.rejects(s.serve(requestOf(s.links.sign(file.id, file.expiresAt!), { range })), {
      code: "range_not_satisfiable",
      extras: { headers: { "content-range": "bytes */10" } },
    });
  });
}

/** A test that fails when it leaves a file open. */
function testThatCloses(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, fn, sanitizeResources: true });
}

testThatCloses("an answer that nobody reads holds no file open", async () => {
  await using s = await stage();
  const file = await s.kept("0123456789");
  const link = s.links.sign(file.id, file.expiresAt!);
  for (const range of [null, "bytes=4-"]) assert.ok((await s.serve(requestOf(link, { range }))).body);
});

testThatCloses("a client that goes away during a read leaves no file open", async () => {
  await using s = await stage();
  const file = await s.kept("0123456789");
  const request = requestOf(s.links.sign(file.id, file.expiresAt!), { range: "bytes=1-" });
  for (const reads of [0, 1]) {
    const reader = (await s.serve(request)).body!.getReader();
    for (let read = 0; read < reads; read++) await reader.read();
    const underway = reader.read();
    await reader.cancel();
    assert.equal((await underway).done, true);
    // Opening and reading go on for a moment after the client has gone.
    await Deno.readTextFile(s.media.path(file.id));
  }
});

testThatCloses("a file that cannot be read breaks the answer off, and is closed", async () => {
  await using s = await stage();
  const file = await s.kept("0123456789");
  const request = requestOf(s.links.sign(file.id, file.expiresAt!));
  const gone = await s.serve(request);
  await Deno.remove(s.media.path(file.id));
  await assert.rejects(gone.text());
  // A folder can be opened, and not read.
  await Deno.mkdir(s.media.path(file.id));
  await assert.rejects((await s.serve(request)).text());
  await Deno.remove(s.media.path(file.id));
  await Deno.writeTextFile(s.media.path(file.id), "01234");
  await assert.rejects((await s.serve(request)).text(), /shorter than its record/);
});

Deno.test("HEAD gives the headers of GET and no body", async () => {
  await using s = await stage();
  const file = await s.kept("0123456789");
  const response = await s.serve(requestOf(s.links.sign(file.id, file.expiresAt!), { method: "HEAD" }));
  assert.equal(response.headers.get("content-length"), "10");
  assert.equal(response.body, null);
});

Deno.test("what a stranger sent never runs: only pictures, sound and film are shown, and all under a policy", async () => {
  await using s = await stage();
  const rows: [string, string, string][] = [
    ["image/jpeg", "image/jpeg", "inline"],
    ["audio/ogg; codecs=opus", "audio/ogg; codecs=opus", "inline"],
    ["application/pdf", "application/pdf", "attachment"],
    ["text/html", "application/octet-stream", "attachment"],
    ["image/svg+xml", "application/octet-stream", "attachment"],
    ["application/xhtml+xml", "application/octet-stream", "attachment"],
    ["TEXT/XML; charset=utf-8", "application/octet-stream", "attachment"],
    ["application/javascript", "application/octet-stream", "attachment"],
    ["application/x-unknown", "application/x-unknown", "attachment"],
  ];
  for (const [mimetype, shownAs, disposition] of rows) {
    const file = await s.kept("<script>alert(1)</script>", { mimetype });
    const { headers, body } = await s.serve(requestOf(s.links.sign(file.id, file.expiresAt!)));
    await body?.cancel();
    assert.equal(headers.get("content-type"), shownAs);
    assert.match(headers.get("content-disposition")!, new RegExp(`^${disposition};`));
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.equal(headers.get("access-control-allow-origin"), "*");
    assert.match(headers.get("content-security-policy")!, /default-src 'none'.*sandbox$/);
  }
});

Deno.test("a name of any characters stays one header and comes back whole", async () => {
  await using s = await stage();
  for (const filename of ['a"b\\c.pdf', "Rechnung № 5 – für Ünal 😀.pdf", "a'b(c)*.pdf", "100%.pdf"]) {
    const file = await s.kept("x", { filename });
    const { headers, body } = await s.serve(requestOf(s.links.sign(file.id, file.expiresAt!)));
    await body?.cancel();
    const encoded = /filename\*=UTF-8''([\w.%!#$&+^`|~-]+)$/.exec(headers.get("content-disposition")!)?.[1];
    assert.equal(decodeURIComponent(encoded!), filename);
  }
});

function incoming(media: Partial<IncomingMedia>, change: Partial<Incoming> = {}): Incoming {
  return plainIncoming({
    type: "imageMessage",
    text: null,
    ...change,
    media: {
      mimetype: "image/jpeg",
      filename: null,
      size: 5,
      download: () => Promise.resolve(streamOf("bytes")),
      ...media,
    },
  });
}

Deno.test("an incoming file is kept, named by kind and time, and its link serves it for 24 h", async () => {
  await using s = await stage();
  await s.clock.advance(123);
  const taken = await s.ingest.take("acc_1", incoming({}), new AbortController().signal);
  assert.equal(taken?.media.filename, "image-20260115-120000.jpg");
  assert.equal(taken?.media.size, 5);
  assert.equal(taken?.media.reason, undefined);
  const change = new Change();
  keepFile(change, taken!.file!);
  await s.kv.commit(change);
  await s.clock.advance(24 * HOUR_MS - 1);
  assert.equal(await (await s.serve(requestOf(taken!.media.url!))).text(), "bytes");
  await s.clock.advance(1_000);
  await assert.rejects(s.serve(requestOf(taken!.media.url!)), problem("not_found"));
});

Deno.test("a document keeps its name, without folders; a message without a file gives nothing", async () => {
  await using s = await stage();
  const document = incoming({ filename: "../../etc/Vertrag 😀.pdf", mimetype: "application/pdf" }, {
    type: "documentMessage",
  });
  assert.equal(
    (await s.ingest.take("acc_1", document, new AbortController().signal))?.media.filename,
    "Vertrag 😀.pdf",
  );
  assert.equal(await s.ingest.take("acc_1", { ...incoming({}), media: null }, new AbortController().signal), null);
});

Deno.test("a file that cannot be had gives a null address, a reason, and nothing on disk", async () => {
  await using s = await stage();
  const big = new Uint8Array(1024 * 1024);
  const rows: [Partial<IncomingMedia>, RegExp, number][] = [
    [
      { download: () => Promise.reject(new MediaUnavailable("the sender's phone no longer has the file")) },
      /no longer has/,
      0,
    ],
    [{ size: 100 * 1024 ** 2 + 1 }, /larger than 100 MiB/, 0],
    [
      {
        size: 5,
        download: () =>
          Promise.resolve(ReadableStream.from((function* () {
            for (let i = 0; i < 101; i++) yield big;
          })())),
      },
      /larger than 100 MiB/,
      0,
    ],
    [{ download: () => Promise.reject(new Error("ECONNRESET")) }, /could not be downloaded/, 5_000],
    [{ download: () => new Promise(() => {}) }, /longer than 120 s/, 120_000],
    [
      { download: () => Promise.resolve(new ReadableStream({ pull: () => new Promise(() => {}) })) },
      /longer than 120 s/,
      120_000,
    ],
  ];
  for (const [media, reason, waitMs] of rows) {
    const taking = s.ingest.take("acc_1", incoming(media), new AbortController().signal);
    await s.clock.advance(waitMs);
    const taken = await taking;
    assert.equal(taken?.media.url, null);
    assert.match(taken?.media.reason ?? "", reason);
    assert.equal(taken?.file, null);
    assert.deepEqual(await s.onDisk(), []);
  }
});

Deno.test("a download that breaks off is tried again", async () => {
  await using s = await stage();
  let tries = 0;
  const download = () => ++tries < 3 ? Promise.reject(new Error("ECONNRESET")) : Promise.resolve(streamOf("bytes"));
  const taking = s.ingest.take("acc_1", incoming({ download }), new AbortController().signal);
  await s.clock.advance(5_000);
  assert.equal((await taking)?.media.reason, undefined);
  assert.equal(tries, 3);
});

/** What a message's file becomes whose place is away for so long, as a bucket or its store while another takes over. */
async function takenWhileAway(awayMs: number, code: StoreError["code"] = "unavailable") {
  await using s = await stage();
  const media = withFairWrites(s.media, s.clock);
  const begun = s.clock.now();
  const triedMs: number[] = [];
  const away: typeof media = {
    ...media,
    async write(content, options) {
      // When it is tried, not how long the disk takes: the clock runs on meanwhile.
      triedMs.push(s.clock.now() - begun);
      if (triedMs.at(-1)! >= awayMs) return await media.write(content, options);
      await content.cancel();
      throw new StoreError(code, "the bucket cannot be used");
    },
  };
  const ingest = makeMediaIngest({ media: away, links: s.links, runtime: s.runtime });
  const taken = await s.clock.during(ingest.take("acc_1", incoming({}), new AbortController().signal));
  return { ...taken!.media, triedMs };
}

Deno.test("a file is kept whose place is away for a minute; longer than for two it holds up no message", async () => {
  const kept = await takenWhileAway(60_000);
  assert.ok(kept.url !== null && kept.triedMs.at(-1)! < 80_000, `tried after ${kept.triedMs} ms`);
  const lost = await takenWhileAway(10 * 60_000);
  assert.deepEqual([lost.url, lost.reason], [null, "the file could not be kept"]);
  assert.ok(lost.triedMs.at(-1)! <= 120_000, `tried after ${lost.triedMs} ms`);
  const full = await takenWhileAway(60_000, "full");
  assert.match(full.reason ?? "", /no space left/);
  assert.equal(full.triedMs.length, 1);
});

Deno.test("a gateway that stops gives no answer about a file, so that the message comes again", async () => {
  await using s = await stage();
  const abort = new AbortController();
  const taking = s.ingest.take("acc_1", incoming({ download: () => new Promise(() => {}) }), abort.signal);
  abort.abort();
  await assert.rejects(taking);
});

Deno.test("the sweep takes expired files, and over the cap the oldest received ones, never a queued one", async () => {
  await using s = await stage();
  const queued = await s.kept("x".repeat(500), { expiresAt: null });
  const short = await s.kept("gone soon", { expiresAt: s.clock.now() + 1_000 });
  const files: FileRecord[] = [];
  for (let i = 0; i < 4; i++) {
    await s.clock.advance(10);
    files.push(await s.kept("x".repeat(100)));
  }
  assert.deepEqual(await sweepMedia(s, { capBytes: Infinity }), { expired: 0, overCap: 0 });
  await s.clock.advance(1_000);
  assert.deepEqual(await sweepMedia(s, { capBytes: 700 }), { expired: 1, overCap: 2 });
  assert.deepEqual(await s.onDisk(), [queued.id, files[2]!.id, files[3]!.id].sort());
  assert.equal((await s.kv.get(mediaKeys.file(short.id))).value, null);
  assert.deepEqual(await sweepMedia(s, { capBytes: 0 }), { expired: 0, overCap: 2 });
  assert.deepEqual(await s.onDisk(), [queued.id]);
});

Deno.test("the files of one account push out no other's, nor do those that wait to be sent", async () => {
  await using s = await stage();
  const quiet: string[] = [];
  for (let i = 0; i < 3; i++) quiet.push((await s.kept("x".repeat(100), { accountId: "acc_quiet" })).id);
  const loud: string[] = [];
  for (let i = 0; i < 10; i++) {
    await s.clock.advance(10);
    loud.push((await s.kept("x".repeat(100), { accountId: "acc_loud" })).id);
  }
  assert.deepEqual(await sweepMedia(s, { capBytes: 1_000 }), { expired: 0, overCap: 3 });
  assert.deepEqual(await s.onDisk(), [...quiet, ...loud.slice(3)].sort());
  assert.throws(() => s.shares.assertRoom("acc_loud"), problem("too_much_at_once"));
  s.shares.assertRoom("acc_quiet");

  // What waits to be sent stays, however much it is, and costs its own account what it received.
  for (let i = 0; i < 10; i++) {
    loud.push((await s.kept("x".repeat(100), { accountId: "acc_loud", expiresAt: null })).id);
  }
  assert.deepEqual(await sweepMedia(s, { capBytes: 1_000 }), { expired: 0, overCap: 7 });
  assert.deepEqual(await s.onDisk(), [...quiet, ...loud.slice(10)].sort());
  assert.deepEqual(await sweepMedia(s, { capBytes: 2_000 }), { expired: 0, overCap: 0 });
  s.shares.assertRoom("acc_loud");
});

Deno.test("the sweep reads what is due, and not what is kept", async () => {
  await using s = await stage();
  const due = await s.kept("gone soon", { expiresAt: s.clock.now() + 1_000 });
  for (let i = 0; i < 300; i++) await s.kept("kept");
  let read = 0;
  const kv: Kv = {
    ...s.kv,
    close: () => {},
    async *list(range, options) {
      for await (const row of s.kv.list(range, options)) {
        read++;
        yield row as never;
      }
    },
  };
  await s.clock.advance(1_000);
  assert.deepEqual(await sweepMedia({ ...s, kv }, { capBytes: Infinity }), { expired: 1, overCap: 0 });
  assert.equal(read, 1);
  assert.equal((await s.kv.get(mediaKeys.file(due.id))).value, null);
  assert.equal((await s.onDisk()).length, 300);
});

Deno.test("everything that is due goes in one turn, unless it is told to stop", async () => {
  await using s = await stage();
  for (let i = 0; i < 250; i++) await s.kept("short", { expiresAt: s.clock.now() + 1 });
  await s.clock.advance(1);
  assert.deepEqual(await sweepMedia(s, { signal: AbortSignal.abort(), capBytes: Infinity }), {
    expired: 0,
    overCap: 0,
  });
  assert.deepEqual(await sweepMedia(s, { capBytes: Infinity }), { expired: 250, overCap: 0 });
  assert.deepEqual(await s.onDisk(), []);
  for await (const { key } of s.kv.list({ prefix: mediaKeys.fileEnds() })) assert.fail(`left: ${key.join("/")}`);
});

Deno.test("a disk that received files have filled has room again when they are due: no row goes without it", async () => {
  await using s = await stage();
  for (let i = 0; i < 150; i++) await s.kept("short", { expiresAt: s.clock.now() + 1 });
  await s.clock.advance(1);
  const kv: Kv = {
    ...s.kv,
    close: () => {},
    async commit(change) {
      if ((await s.onDisk()).length >= 150) throw new StoreError("full", "there is no space left");
      return await s.kv.commit(change);
    },
  };
  assert.deepEqual(await sweepMedia({ ...s, kv }, { capBytes: Infinity }), { expired: 150, overCap: 0 });
  assert.deepEqual(await s.onDisk(), []);
});

Deno.test("a file that cannot be removed loses its row all the same, and holds up no other", async () => {
  await using s = await stage();
  const due: FileRecord[] = [];
  for (let i = 0; i < 3; i++) due.push(await s.kept("short", { expiresAt: s.clock.now() + 1 }));
  await s.clock.advance(1);
  const media = {
    ...s.media,
    remove: (id: string) => id === due[0]!.id ? Promise.reject(new Error("locked")) : s.media.remove(id),
  };
  await assert.rejects(sweepMedia({ ...s, media }, { capBytes: Infinity }), /locked/);
  for (const { id } of due) assert.equal((await s.kv.get(mediaKeys.file(id))).value, null);
  assert.deepEqual(await sweepMedia({ ...s, media }, { capBytes: Infinity }), { expired: 0, overCap: 0 });
});

Deno.test("after a restart the cap holds as soon as the folder was walked once", async () => {
  await using s = await stage();
  const files: FileRecord[] = [];
  for (let i = 0; i < 5; i++) {
    await s.clock.advance(10);
    files.push(await s.kept("x".repeat(100)));
  }
  assert.equal(s.media.bytes(), 500);
  const media = await openDiskMediaStore(join(s.folder, "media"), s.runtime);
  const restarted = { ...s, media };
  assert.deepEqual(await sweepMedia(restarted, { capBytes: 300 }), { expired: 0, overCap: 0 }, "nothing on a guess");
  await sweepOrphans(restarted);
  assert.equal(media.bytes(), 500);
  assert.deepEqual(await sweepMedia(restarted, { capBytes: 300 }), { expired: 0, overCap: 2 });
  assert.deepEqual(await s.onDisk(), files.slice(2).map(({ id }) => id).sort());
  await media.remove(files[4]!.id);
  await media.remove(files[4]!.id);
  assert.equal(media.bytes(), 200);
});

Deno.test("a received file of an older build, that nobody wrote down an end for, goes with the orphans", async () => {
  await using s = await stage();
  const { id, expiresAt } = await s.kept("of an older build");
  const queued = await s.kept("of a message that waits", { expiresAt: null });
  await s.kv.commit(new Change().delete(mediaKeys.fileEnd(expiresAt!, id)));
  await s.clock.advance(24 * HOUR_MS);
  assert.deepEqual(await sweepMedia(s, { capBytes: Infinity }), { expired: 0, overCap: 0 });
  assert.equal(await sweepOrphans(s), 0);
  await s.clock.advance(HOUR_MS);
  assert.equal(await sweepOrphans(s), 1);
  assert.deepEqual(await s.onDisk(), [queued.id]);
  assert.equal((await s.kv.get(mediaKeys.file(id))).value, null);
});

Deno.test("files that nothing refers to go after an hour, but not one that a commit is about to name", async () => {
  await using s = await stage();
  const crashed = await openDiskMediaStore(join(s.folder, "media"), s.runtime);
  const { fileId: orphan } = await crashed.write(streamOf("of a process that died"), 100);
  const unfinished = s.media.path(orphan) + ".part";
  await Deno.writeTextFile(unfinished, "half");
  await Deno.utime(unfinished, new Date(s.clock.now()), new Date(s.clock.now()));
  const { fileId: accepting } = await s.media.write(streamOf("of an accept in flight"), 100);
  const kept = await s.kept("named", { expiresAt: null });
  await s.clock.advance(HOUR_MS - 1);
  assert.equal(await sweepOrphans(s), 0);
  await s.clock.advance(1);
  assert.equal(await sweepOrphans(s), 2);
  assert.deepEqual(await s.onDisk(), [accepting, kept.id].sort());
  await s.clock.advance(24 * HOUR_MS);
  assert.equal(await sweepOrphans(s), 1);
  assert.deepEqual(await s.onDisk(), [kept.id]);
});

Deno.test("names and types of strangers are made safe", () => {
  assert.equal(safeFilename("/etc/passwd"), "passwd");
  assert.equal(safeFilename("C:\\temp\\a.txt"), "a.txt");
  assert.equal(safeFilename("a\r\nb\0.txt"), "ab.txt");
  assert.equal(safeFilename("invoice\u202efdp.exe"), "invoicefdp.exe");
  assert.equal(safeFilename("x".repeat(300) + ".pdf"), "x".repeat(251) + ".pdf");
  assert.equal(safeFilename("x".repeat(251) + ".pdf"), "x".repeat(251) + ".pdf");
  for (const name of ["", "..", ".", "/", "a/", "\0"]) assert.equal(safeFilename(name), null);
  for (
    const type of ["image/png", "audio/ogg; codecs=opus", 'text/plain; charset="utf-8"', "application/vnd.ms-excel"]
  ) assert.equal(safeMimetype(type), type);
  for (const type of ["", "x", "text/html\r\nx: y", "a/b c", "a/b; c", "é/x"]) {
    assert.equal(safeMimetype(type), "application/octet-stream");
  }
  assert.equal(generatedFilename("audio", { mimetype: "audio/ogg; codecs=opus", at: 0 }), "audio-19700101-000000.ogg");
  assert.equal(generatedFilename("image", { mimetype: "image/x-odd", at: 0 }), "image-19700101-000000.bin");
});

Deno.test("a file is fetched by its address, with the name that the server or the address gives", async () => {
  await using s = await stage();
  const safeFetch = makeSafeFetch({ clock: s.clock, allow: readAllowList(["127.0.0.1"]) });
  const fetchFile = makeFetchFile({ safeFetch, media: withFairWrites(s.media, s.clock) });
  const receiver = await Receiver.start();
  const at = (path: string) => `http://127.0.0.1:${receiver.port}${path}`;
  const rows: [string, Record<string, string>, string][] = [
    ["/a/Invoice%201.pdf?x=1", { "content-type": "application/pdf" }, "Invoice 1.pdf"],
    [
      "/download",
      { "content-type": "application/pdf", "content-disposition": 'attachment; filename="a \\"b\\".pdf"' },
      'a "b".pdf',
    ],
    ["/download", {
      "content-type": "application/pdf",
      "content-disposition": "attachment; filename=plain.pdf; filename*=UTF-8''%E2%82%AC.pdf",
    }, "€.pdf"],
    ["/", { "content-type": "image/png" }, "file.png"],
    [
      "/x",
      { "content-disposition": Buffer.from('attachment; filename="março.pdf"').toString("latin1") },
      "março.pdf",
    ],
    ["/x", { "content-disposition": 'attachment; filename="../../evil.sh"' }, "evil.sh"],
    ["/%E0%A4%A.pdf", {}, "%E0%A4%A.pdf"],
  ];
  for (const [path, headers, filename] of rows) {
    receiver.answer = answering(200, headers);
    const fetched = await fetchFile(at(path), BY);
    assert.equal(fetched.filename, filename);
    assert.equal(fetched.file.sha256, sha256("ok"));
    await s.media.remove(fetched.file.fileId);
  }
  receiver.answer = (response) => {
    response.writeHead(200, { "content-encoding": "gzip" });
    response.end(gzipSync("unpacked"));
  };
  assert.equal((await fetchFile(at("/x"), BY)).file.sha256, sha256("unpacked"));
  const bad: [() => void, RegExp][] = [
    [() => receiver.answer = answering(404), /answered 404/],
    [() => receiver.answer = (response) => response.end(), /empty/],
    [() => receiver.answer = answering(200, { "content-encoding": "br" }), /compression/],
    [() => receiver.answer = answering(200, { "content-encoding": "gzip" }), /cannot be read/],
    [() => receiver.answer = answering(302, { location: "http://10.0.0.1/" }), /public internet/],
    [() => receiver.answer = answering(302, { location: "/again" }), /redirects/],
  ];
  for (const [prepare, message] of bad) {
    prepare();
    await assert.rejects(
      fetchFile(at("/x"), BY),
      (error) =>
        error instanceof Problem && error.code === "validation_failed" &&
          error.extras.errors?.[0]?.path === "fileUrl" &&
          message.test(error.message) || assert.fail(String(error)),
    );
  }
  receiver.answer = (response) => {
    response.writeHead(200, { "content-encoding": "gzip" });
    response.end(gzipSync(new Uint8Array(101 * 1024 * 1024)));
  };
  await assert.rejects(fetchFile(at("/bomb"), BY), problem("payload_too_large"));
  assert.equal((await s.onDisk()).length, 1);
  await receiver.close();
});
