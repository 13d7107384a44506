import assert from "node:assert/strict";
import { readQueue } from "../../../src/line/moved_queue.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";
import { aSend, sendWorld } from "../../support/send_world.ts";

Deno.test("a queue that is too large to be moved is found so before its files are read", async () => {
  const kv = new MemoryKv();
  const { accept } = sendWorld(kv, testRuntime());
  const file = { fileId: "med_1", size: 100_000, sha256: "0".repeat(64) };
  const large = { kind: "document", filename: "a.bin", mimetype: "application/octet-stream", caption: null, file };
  await accept(aSend());
  for (let i = 0; i < 2; i++) await accept(aSend({ items: [{ to: "34600000001", content: large as never }] }));
  let reads = 0;
  const media = {
    read() {
      reads++;
      return Promise.resolve(new Blob(["bytes"]).stream());
    },
  };
  assert.equal(await readQueue({ kv, media }, "ses_1", 150_000), null);
  assert.equal(reads, 1, "of the one that still fitted");
  assert.equal((await readQueue({ kv, media }, "ses_1", 300_000))?.length, 3);
});
