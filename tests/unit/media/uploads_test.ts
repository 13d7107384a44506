import assert from "node:assert/strict";
import { join } from "node:path";
import { Problem } from "../../../src/errors.ts";
import { openDiskMediaStore } from "../../../src/media/disk_store.ts";
import { DiskShares } from "../../../src/media/fair_shares.ts";
import { type FileRecord, mediaKeys } from "../../../src/media/rows.ts";
import { keepFile } from "../../../src/media/store.ts";
import { sweepMedia, sweepOrphans } from "../../../src/media/sweep.ts";
import { makeUploads, removeUploads } from "../../../src/media/uploads.ts";
import { Change } from "../../../src/store/kv.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";

const DAY_MS = 24 * 3_600_000;
const OF = { accountId: "acc_1", lineId: "ses_1", mimetype: "image/png", filename: "cat.png" };
const isGone = (error: unknown) => error instanceof Problem && error.code === "not_found";

async function onDisk(run: (made: Awaited<ReturnType<typeof stage>>) => Promise<void>): Promise<void> {
  const made = await stage();
  try {
    await run(made);
  } finally {
    await Deno.remove(made.folder, { recursive: true });
  }
}

async function stage() {
  const folder = await Deno.makeTempDir();
  const runtime = testRuntime();
  const kv = new MemoryKv();
  const media = await openDiskMediaStore(join(folder, "media"), runtime);
  const uploads = makeUploads({ kv, runtime });
  const shares = new DiskShares();
  const stored = () => media.write(new Blob(["a cat"]).stream(), 1_000);
  return {
    folder,
    clock: runtime.clock,
    kv,
    media,
    uploads,
    stored,
    /** Resolves to the id of an upload's file. */
    async upload(of: Partial<typeof OF> = {}): Promise<string> {
      const file = await stored();
      await uploads.keep(file, { ...OF, ...of });
      return file.fileId;
    },
    /** Runs both sweeps; resolves to the number of files that are left. */
    async swept(capBytes = Infinity): Promise<number> {
      await sweepMedia({ kv, media, runtime, shares }, { capBytes });
      await sweepOrphans({ kv, media, runtime });
      return (await Array.fromAsync(media.folders())).flat().length;
    },
    indexed: async () => (await Array.fromAsync(kv.list({ prefix: mediaKeys.uploads("ses_1") }))).length,
  };
}

Deno.test("an upload is found by its account for 30 days, and its bytes stay for one more", () =>
  onDisk(async ({ uploads, upload, clock, swept }) => {
    const id = await upload();
    const { mimetype, filename, size } = await uploads.find("acc_1", id);
    assert.deepEqual({ mimetype, filename, size }, { mimetype: "image/png", filename: "cat.png", size: 5 });
    await assert.rejects(uploads.find("acc_2", id), isGone);
    await clock.advance(30 * DAY_MS - 1);
    await uploads.find("acc_1", id);
    await clock.advance(1);
    await assert.rejects(uploads.find("acc_1", id), isGone);
    assert.equal(await swept(), 1);
    await clock.advance(DAY_MS);
    assert.equal(await swept(), 0);
  }));

Deno.test("a deleted upload is gone at once, and its bytes once no message can need them", () =>
  onDisk(async ({ uploads, upload, clock, swept }) => {
    const id = await upload();
    await assert.rejects(uploads.remove("acc_2", id), isGone);
    await uploads.remove("acc_1", id);
    await assert.rejects(uploads.find("acc_1", id), isGone);
    await assert.rejects(uploads.remove("acc_1", id), isGone);
    await clock.advance(DAY_MS - 1);
    assert.equal(await swept(), 1);
    await clock.advance(1);
    assert.equal(await swept(), 0);
  }));

Deno.test("received files are found until their links end, and files of waiting messages never", () =>
  onDisk(async ({ uploads, stored, kv, clock }) => {
    const keep = async (expiresAt: number | null) => {
      const { fileId: id, size, sha256 } = await stored();
      const record: FileRecord = { id, size, sha256, accountId: "acc_1", mimetype: "a/b", filename: "a", expiresAt };
      const change = new Change();
      keepFile(change, record);
      await kv.commit(change);
      return id;
    };
    const received = await keep(clock.now() + DAY_MS);
    await uploads.find("acc_1", received);
    await assert.rejects(uploads.find("acc_1", await keep(null)), isGone);
    await clock.advance(DAY_MS);
    await assert.rejects(uploads.find("acc_1", received), isGone);
  }));

Deno.test("with a line its uploads go, and no other's", () =>
  onDisk(async ({ uploads, upload, kv, clock, swept, indexed }) => {
    const [one, two, other] = [await upload(), await upload(), await upload({ lineId: "ses_2" })];
    await uploads.remove("acc_1", two);
    await removeUploads(kv, "ses_1", clock.now());
    await assert.rejects(uploads.find("acc_1", one), isGone);
    await uploads.find("acc_1", other);
    assert.equal(await indexed(), 0);
    await clock.advance(DAY_MS);
    assert.equal(await swept(), 1);
  }));

Deno.test("a full disk takes uploads, and the next upload forgets those long gone", () =>
  onDisk(async ({ uploads, upload, clock, swept, indexed }) => {
    const id = await upload();
    assert.equal(await swept(4), 0);
    await assert.rejects(uploads.find("acc_1", id), isGone);
    await clock.advance(32 * DAY_MS);
    await upload();
    assert.equal(await indexed(), 1);
  }));
