import assert from "node:assert/strict";
import { type Bucket, openBucket } from "../../../src/media/s3.ts";
import { makeBucketMediaStore } from "../../../src/media/bucket_store.ts";
import { denoKvFiles } from "../../../src/store/deno_kv/file_engine.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { Receiver } from "../../support/receiver.ts";
import { testRuntime } from "../../support/runtime.ts";

/** A bucket that keeps what is put into it, and accepts nothing else. */
function keeping(): { bucket: Bucket; parts: Uint8Array[] } {
  const parts: Uint8Array[] = [];
  const no = () => Promise.reject(new Error("not expected"));
  const bucket: Bucket = {
    put: (_, bytes) => Promise.resolve(void parts.push(bytes)),
    begin: () => Promise.resolve("upload"),
    part(_name, _uploadId, { number, bytes }) {
      parts.push(bytes);
      return Promise.resolve({ number, etag: `"${number}"` });
    },
    finish: () => Promise.resolve(),
    get: no,
    delete: no,
    abort: no,
    unfinished: no,
  };
  return { bucket, parts };
}

Deno.test("a part is copied as it arrives, so that the pieces of one in tiny chunks need no memory", async () => {
  const { bucket, parts } = keeping();
  const media = makeBucketMediaStore({ bucket, kv: new MemoryKv(), runtime: testRuntime(), engine: denoKvFiles });
  const piece = new Uint8Array(1_000_000);
  let left = 20;
  const content = new ReadableStream<Uint8Array>({
    pull(controller) {
      // A list of the pieces would hold this one many times.
      piece.fill(left);
      if (left-- > 0) controller.enqueue(piece);
      else controller.close();
    },
  }, { highWaterMark: 0 });
  const { size } = await media.write(content, 20_000_000);
  assert.equal(size, 20_000_000);
  assert.deepEqual(parts.map(({ length }) => length), [8_000_000, 8_000_000, 4_000_000]);
  for (const { buffer } of parts) assert.ok(buffer.byteLength <= 8 * 1024 ** 2, `${buffer.byteLength} bytes held`);
  const first = parts.flatMap((part) => Array.from({ length: part.length / 1e6 }, (_, i) => part[i * 1e6]));
  assert.deepEqual(first, Array.from({ length: 20 }, (_, i) => 20 - i));
});

Deno.test("a bucket that stops in the middle of a file is given up after half a minute; a slow reader is not", async () => {
  const { clock } = testRuntime();
  const receiver = await Receiver.start((response) => {
    response.writeHead(200, { "content-length": 512 });
    response.write("the beginning");
  });
  const endpoint = `http://127.0.0.1:${receiver.port}`;
  const keys = { accessKeyId: "key", secretAccessKey: "secret", sessionToken: null };
  const bucket = openBucket({ bucket: "files", prefix: "", region: "us-east-1", endpoint, ...keys }, { clock });
  const reader = (await bucket.get("med_1"))!.getReader();
  await clock.advance(60_000);
  assert.equal(new TextDecoder().decode((await reader.read()).value), "the beginning");
  const rest = assert.rejects(reader.read(), { name: "StoreError", code: "unavailable" });
  await clock.advance(30_000);
  await receiver.close();
  await rest;
});
