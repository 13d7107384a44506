/** The media store in a bucket, on a real S3 server. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Buffer } from "node:buffer";
import net from "node:net";
import { listenOn } from "../../src/base/listening.ts";
import { Problem } from "../../src/errors.ts";
import { type Bucket, openBucket } from "../../src/media/s3.ts";
import { makeBucketMediaStore } from "../../src/media/bucket_store.ts";
import { makeMediaLinks } from "../../src/media/signed_link.ts";
import { mediaKeys } from "../../src/media/rows.ts";
import { makeServeFile, makeServeMedia } from "../../src/media/serve.ts";
import { keepFile, type MediaStore } from "../../src/media/store.ts";
import { DiskShares } from "../../src/media/fair_shares.ts";
import { sweepMedia } from "../../src/media/sweep.ts";
import { systemClock } from "../../src/runtime.ts";
import { denoKvFiles } from "../../src/store/deno_kv/file_engine.ts";
import { Change, StoreError } from "../../src/store/kv.ts";
import { connectionsOf } from "../support/closing.ts";
import { MemoryKv } from "../support/memory_kv.ts";
import { testRuntime } from "../support/runtime.ts";
import { s3Program, type S3Server, startS3 } from "../support/s3_server.ts";

const MIB = 1024 ** 2;
const DAY_MS = 24 * 3_600_000;
const never = new AbortController().signal;
const problem = (code: Problem["code"]) => (error: unknown) => error instanceof Problem && error.code === code;

function bytesOf(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  for (let i = 0; i < size; i += 1 + (i >> 10)) bytes[i] = i % 251;
  return bytes;
}

/** In chunks as they come from a socket. */
function streamOf(bytes: Uint8Array, chunk = 100_000): ReadableStream<Uint8Array> {
  const chunks = Array.from(
    { length: Math.ceil(bytes.length / chunk) },
    (_, i) => bytes.slice(i * chunk, (i + 1) * chunk),
  );
  return ReadableStream.from(chunks);
}

const textOf = async (stream: ReadableStream<Uint8Array>) => await new Response(stream as BodyInit).bytes();

const NO_SUCH_UPLOAD = "HTTP/1.1 404 Not Found\r\nContent-Length: 40\r\n\r\n<Error><Code>NoSuchUpload</Code></Error>";

/**
 * A way to the server on which the answer to the first request that completes an upload is lost, or breaks off. Further
 * ones are answered as by servers that remember no completed upload.
 */
async function losingAnswers(server: S3Server, passes: (answer: Buffer) => Buffer) {
  let completed = 0;
  const relay = net.createServer((near) => {
    const far = net.connect(Number(new URL(server.config.endpoint!).port), "127.0.0.1");
    let completes = false;
    near.on("data", (data) => {
      completes = /^POST \S+\?uploadId=/.test(data.toString("latin1"));
      far.write(data);
    });
    far.on("data", (data: Buffer) => {
      if (!completes) return near.write(data);
      near.end(completed++ === 0 ? passes(data) : NO_SUCH_UPLOAD);
    });
    for (const [one, other] of [[near, far], [far, near]] as const) {
      one.on("error", () => {});
      one.on("close", () => other.destroy());
    }
  });
  const { close } = connectionsOf(relay);
  const endpoint = `http://127.0.0.1:${await listenOn(relay)}`;
  return {
    config: { ...server.config, endpoint },
    completed: () => completed,
    [Symbol.asyncDispose]: close,
  };
}

function stage({ config }: Pick<S3Server, "config">) {
  const runtime = testRuntime();
  const kv = new MemoryKv();
  const media = makeBucketMediaStore({
    bucket: openBucket(config, { clock: systemClock }),
    kv,
    runtime,
    engine: denoKvFiles,
  });
  return {
    runtime,
    kv,
    media,
    async keep(written: Awaited<ReturnType<MediaStore["write"]>>, expiresAt: number | null) {
      const change = new Change();
      const { fileId: id, size, sha256 } = written;
      keepFile(change, {
        id,
        size,
        sha256,
        accountId: "acc_1",
        mimetype: "image/png",
        filename: "a.png",
        expiresAt,
      });
      await kv.commit(change);
    },
  };
}

if (s3Program() === null) {
  console.log("The tests of files in a bucket are skipped: there is no versitygw here (go install).");
} else {
  let server: S3Server;
  Deno.test.beforeAll(async () => {
    server = await startS3();
  });
  Deno.test.afterAll(() => server.remove());

  Deno.test("files of any size go into the bucket in parts, and come back whole and in part", async () => {
    const { media } = stage(server);
    for (const size of [0, 1, 600, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 20 * MIB]) {
      const bytes = bytesOf(size);
      const written = await media.write(streamOf(bytes), 100 * MIB);
      assert.equal(written.size, size);
      assert.equal(written.sha256, createHash("sha256").update(bytes).digest("hex"));
      assert.deepEqual(await textOf(await media.read(written.fileId, { start: 0, length: size })), bytes);
      assert.deepEqual(await media.head(written.fileId, 512), bytes.slice(0, 512));
      const [start, length] = [Math.floor(size / 3), Math.ceil(size / 3)];
      assert.deepEqual(
        await textOf(await media.read(written.fileId, { start, length })),
        bytes.slice(start, start + length),
      );
      let path: string;
      {
        await using local = await media.onDisk(written.fileId, never);
        path = local.path;
        assert.deepEqual(await Deno.readFile(path), bytes);
      }
      await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
      await media.remove(written.fileId);
      await media.remove(written.fileId);
      await assert.rejects(media.onDisk(written.fileId, never), problem("not_found"));
      await assert.rejects(media.read(written.fileId, { start: 0, length: 1 }), problem("not_found"));
    }
    assert.deepEqual(server.objects(), []);
  });

  Deno.test("a file that is too large, or whose sender goes, leaves nothing in the bucket", async () => {
    const { media } = stage(server);
    await assert.rejects(media.write(streamOf(bytesOf(20 * MIB)), 17 * MIB), problem("payload_too_large"));
    await assert.rejects(media.write(streamOf(bytesOf(600)), 599), problem("payload_too_large"));
    const broken = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytesOf(9 * MIB));
      },
      pull: () => Promise.reject(new Error("the client has gone")),
    }, { highWaterMark: 0 });
    await assert.rejects(media.write(broken, 100 * MIB), /the client has gone/);
    assert.deepEqual([server.objects(), server.unfinished()], [[], 0]);
  });

  for (
    const [how, passes] of [
      ["is lost", () => Buffer.alloc(0)],
      ["breaks off", (answer: Buffer) => answer.subarray(0, answer.indexOf("\r\n\r\n") + 8)],
    ] as const
  ) {
    Deno.test(`an upload counts as complete also if the answer to that ${how}`, async () => {
      await using way = await losingAnswers(server, passes);
      const { media } = stage(way);
      const bytes = bytesOf(9 * MIB);
      const { fileId } = await media.write(streamOf(bytes), 100 * MIB);
      assert.equal(way.completed(), 2);
      const direct = stage(server).media;
      assert.deepEqual(await textOf(await direct.read(fileId, { start: 0, length: bytes.length })), bytes);
      await direct.remove(fileId);
      assert.deepEqual([server.objects(), server.unfinished()], [[], 0]);
    });
  }

  Deno.test("an upload whose parts are gone is not complete", async () => {
    const bucket = openBucket(server.config, { clock: systemClock });
    const uploadId = await bucket.begin("med_1");
    const part = await bucket.part("med_1", uploadId, { number: 1, bytes: bytesOf(6 * MIB) });
    await bucket.abort("med_1", uploadId);
    await assert.rejects(bucket.finish("med_1", uploadId, [part]), StoreError);
    assert.deepEqual([server.objects(), server.unfinished()], [[], 0]);
  });

  Deno.test("links stay ours: signed, for a time, with ranges", async () => {
    const { media, kv, runtime, keep } = stage(server);
    const links = makeMediaLinks(() => "https://gateway.test", new Uint8Array(32));
    const serve = makeServeMedia({ kv, serveFile: makeServeFile({ media, runtime }), links, runtime });
    const bytes = bytesOf(9 * MIB);
    const written = await media.write(streamOf(bytes), 100 * MIB);
    const expiresAt = runtime.clock.now() + DAY_MS;
    await keep(written, expiresAt);
    const url = new URL(links.sign(written.fileId, expiresAt));
    assert.equal(url.host, "gateway.test");
    const request = {
      fileId: written.fileId,
      expires: url.searchParams.get("expires")!,
      signature: url.searchParams.get("signature")!,
      method: "GET" as const,
      range: null,
      ifRange: null,
      ifNoneMatch: null,
    };
    assert.deepEqual(await (await serve(request)).bytes(), bytes);
    const part = await serve({ ...request, range: "bytes=-100" });
    assert.equal(part.status, 206);
    assert.deepEqual(await part.bytes(), bytes.slice(-100));
    assert.equal((await serve({ ...request, method: "HEAD" })).headers.get("content-length"), String(bytes.length));
    await assert.rejects(serve({ ...request, signature: "0".repeat(64) }), problem("not_found"));
    await runtime.clock.advance(DAY_MS);
    await assert.rejects(serve(request), problem("not_found"));
    await sweepMedia({ kv, media, runtime, shares: new DiskShares() }, { capBytes: Infinity });
    assert.deepEqual(server.objects(), []);
  });

  Deno.test("what a crash leaves behind is found by its row, and what is needed stays", async () => {
    const { media, kv, runtime, keep } = stage(server);
    const kept = await media.write(streamOf(bytesOf(600)), MIB);
    await keep(kept, null);
    const orphan = await media.write(streamOf(bytesOf(9 * MIB)), 100 * MIB);
    // A process that died while it uploaded: its row and its parts are there.
    const bucket = openBucket(server.config, { clock: systemClock });
    const uploadId = await bucket.begin("med_cut");
    await bucket.part("med_cut", uploadId, { number: 1, bytes: bytesOf(6 * MIB) });
    await kv.commit(new Change().set(mediaKeys.object(runtime.clock.now(), "med_cut"), { uploadId }));
    assert.deepEqual([server.objects(), server.unfinished()], [[kept.fileId, orphan.fileId].sort(), 1]);
    await runtime.clock.advance(DAY_MS - 1);
    assert.equal(await media.sweepOrphans(kv, never), 1);
    assert.deepEqual([server.objects().length, server.unfinished()], [2, 0]);
    await runtime.clock.advance(DAY_MS);
    assert.equal(await media.sweepOrphans(kv, never), 1);
    assert.deepEqual(server.objects(), [kept.fileId]);
    await kv.commit(new Change().delete(mediaKeys.file(kept.fileId)));
    await runtime.clock.advance(DAY_MS + 1);
    assert.equal(await media.sweepOrphans(kv, never), 1);
    assert.deepEqual(server.objects(), []);
    assert.deepEqual(await Array.fromAsync(kv.list({ prefix: mediaKeys.objects() })), []);
  });

  Deno.test("an upload whose beginning was answered too late is aborted a day later", async () => {
    const { media, kv, runtime: { clock, confirmed } } = stage(server);
    await openBucket(server.config, { clock: systemClock }).begin("med_forgotten");
    // The server tells the real time.
    clock.jump(Date.now() - clock.wall());
    confirmed.confirm(clock.wall());
    await media.sweepOrphans(kv, never);
    assert.equal(server.unfinished(), 1);
    await clock.advance(DAY_MS + 60_000);
    await media.sweepOrphans(kv, never);
    assert.equal(server.unfinished(), 0);
  });

  Deno.test("an object that the server does not delete stands in the way of no other", async () => {
    const { media, kv, runtime } = stage(server);
    const kept = await media.write(streamOf(bytesOf(600)), MIB);
    await runtime.clock.advance(1);
    const orphan = await media.write(streamOf(bytesOf(600)), MIB);
    const bucket = openBucket(server.config, { clock: systemClock });
    const refusing: Bucket = {
      ...bucket,
      delete: (name) =>
        name === kept.fileId ? Promise.reject(new StoreError("unavailable", "it is locked")) : bucket.delete(name),
    };
    const sweeping = makeBucketMediaStore({ bucket: refusing, kv, runtime, engine: denoKvFiles });
    await runtime.clock.advance(DAY_MS + 1);
    await assert.rejects(sweeping.sweepOrphans(kv, never), /it is locked/);
    assert.equal(await sweeping.sweepOrphans(kv, never), 1);
    assert.deepEqual(server.objects(), [kept.fileId]);
    assert.notEqual(orphan.fileId, kept.fileId);
    await runtime.clock.advance(DAY_MS + 1);
    assert.equal(await media.sweepOrphans(kv, never), 1, "it is tried again a day later");
    assert.deepEqual(server.objects(), []);
  });

  Deno.test("a server that is away, or refuses the key, is trouble with the storage and names no key", async () => {
    const { media } = stage(server);
    const isUnavailable = (error: unknown) =>
      error instanceof StoreError && error.code === "unavailable" &&
      !error.message.includes(server.config.secretAccessKey);
    await server.halt();
    await assert.rejects(media.write(streamOf(bytesOf(600)), MIB), isUnavailable);
    await server.start();
    const config = { ...server.config, secretAccessKey: "another" };
    const refused = makeBucketMediaStore({
      bucket: openBucket(config, { clock: systemClock }),
      kv: new MemoryKv(),
      runtime: testRuntime(),
      engine: denoKvFiles,
    });
    await assert.rejects(refused.write(streamOf(bytesOf(600)), MIB), isUnavailable);
  });
}
