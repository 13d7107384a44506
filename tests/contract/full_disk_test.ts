/** The disk of the data is full; with the bell ringing, `scripts/checks/full_disk.ts` does the same for a minute. */
import assert from "node:assert/strict";
import { openDiskMediaStore } from "../../src/media/disk_store.ts";
import { DiskShares } from "../../src/media/fair_shares.ts";
import { keepFile } from "../../src/media/store.ts";
import { sweepMedia } from "../../src/media/sweep.ts";
import { openDenoKv } from "../../src/store/deno_kv/deno_kv.ts";
import { Change } from "../../src/store/kv.ts";
import { silentRuntime } from "../support/runtime.ts";
import { onSmallDisk } from "../support/small_disk.ts";

const SCRIPT = new URL("../../scripts/checks/full_disk.ts", import.meta.url).pathname;
/** What the script exits with where it cannot mount a small file system. */
const CANNOT_MOUNT = 3;

Deno.test("a full disk refuses commits, ends neither the process nor the bell, and is written again when there is room", async () => {
  const args = ["run", "-A", "--quiet", SCRIPT, "--seconds", "2"];
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args }).output();
  const said = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  if (code === CANNOT_MOUNT) return console.log(said);
  assert.equal(code, 0, said);
  assert.match(said, /\d+ commits refused; writes again/);
});

Deno.test("a disk that received files have filled takes commits again after the sweep of those that are due", async () => {
  const wasMounted = await onSmallDisk(16, async (folder) => {
    const runtime = silentRuntime();
    const media = await openDiskMediaStore(`${folder}/media`, runtime);
    const kv = await openDenoKv(`${folder}/paloma.db`, { runtime });
    try {
      const { fileId, ...written } = await media.write(new Blob([new Uint8Array(1024 ** 2)]).stream(), Infinity);
      const about = { accountId: "acc_1", mimetype: "image/png", filename: "a.png", expiresAt: 1 };
      const change = new Change();
      keepFile(change, { id: fileId, ...written, ...about });
      await kv.commit(change);
      await fill(`${folder}/others`);
      await assert.rejects(kv.commit(new Change().set(["k"], "x".repeat(10_000))), { code: "full" });
      const swept = await sweepMedia({ kv, media, runtime, shares: new DiskShares() }, { capBytes: Infinity });
      assert.deepEqual(swept, { expired: 1, overCap: 0 });
      assert.ok(await kv.commit(new Change().set(["k"], "x".repeat(10_000))));
    } finally {
      kv.close();
    }
    return true;
  });
  if (!wasMounted) console.log("skipped: no tmpfs could be mounted here");
});

/** Writes to the file until the disk is full. */
async function fill(path: string): Promise<void> {
  using file = await Deno.open(path, { createNew: true, write: true });
  const writing = async () => {
    for (;;) await file.write(new Uint8Array(4096));
  };
  await assert.rejects(writing, { code: "ENOSPC" });
}
