/**
 * Fills a small file system with the store while the bell goes on ringing, then makes room and writes again. A queue on
 * the full disk would end the process (docs/decisions/0005-bell-on-a-queue-in-memory.md): `--queue-on-disk` shows it.
 * Needs root, for it mounts a tmpfs. Exits 0 when all held, 1 when not, 3 when no tmpfs could be mounted.
 */
import { join } from "node:path";
import { Option } from "commander";
import { makeLog } from "../../src/ops/log.ts";
import { systemRuntime } from "../../src/runtime.ts";
import type { Bell } from "../../src/store/bell.ts";
import { denoKvBell, openDenoKvBell } from "../../src/store/deno_kv/bell.ts";
import { openDenoKv } from "../../src/store/deno_kv/deno_kv.ts";
import { Change, key, type Kv, StoreError } from "../../src/store/kv.ts";
import { onSmallDisk } from "../../tests/support/small_disk.ts";
import { parsed, scriptCommand, whole } from "../command.ts";

const RING_EVERY_MS = 500;
const MOST_LATE_MS = 1_000;

const command = scriptCommand("full_disk", "Fills a small file system under a store whose bell goes on ringing")
  .option("--seconds <n>", "how long it rings", whole, 75)
  .option("--queue-on-disk", "puts the bell's queue on the full disk, which ends the process", false)
  .addOption(new Option("--in <folder>", "a small file system that is there").hideHelp());
const { options: { seconds, queueOnDisk, in: inside } } = parsed<
  { seconds: number; queueOnDisk: boolean; in?: string }
>(command);
const runtime = systemRuntime(makeLog("silent"));
const { clock } = runtime;

/** How many commits of 60 KiB it took. Throws errors other than a full disk. */
async function fill(kv: Kv): Promise<number> {
  for (let commits = 0;; commits++) {
    try {
      await kv.commit(new Change().set(key<Uint8Array>("fill", commits), new Uint8Array(60 * 1024)));
    } catch (error) {
      if (error instanceof StoreError && error.code === "full") return commits;
      throw error;
    }
  }
}

/** Resolves when the bell has rung. */
function ringOf(bell: Bell, topic: string, at: number): Promise<void> {
  return new Promise((resolve) => {
    const stop = bell.hear(topic, () => {
      stop();
      resolve();
    });
    bell.ringAt(topic, at);
  });
}

/** Sets one ring after another, each when the one before has come. */
async function ringOn(bell: Bell, kv: Kv): Promise<{ rings: number; worstMs: number; refused: number }> {
  let worstMs = 0, rings = 0, refused = 0;
  for (const end = clock.now() + seconds * 1000; clock.now() < end; rings++) {
    const at = clock.now() + RING_EVERY_MS;
    await ringOf(bell, `check/${rings}`, at);
    worstMs = Math.max(worstMs, clock.now() - at);
    await kv.commit(new Change().set(key<number>("after"), rings)).catch(() => refused++);
  }
  return { rings, worstMs, refused };
}

async function check(folder: string): Promise<boolean> {
  const ballast = join(folder, "ballast");
  await Deno.writeFile(ballast, new Uint8Array(2 * 1024 ** 2));
  const kv = await openDenoKv(join(folder, "store", "kv.sqlite3"), { runtime });
  const bell = queueOnDisk
    ? denoKvBell(await Deno.openKv(join(folder, "queue.sqlite3")), { runtime })
    : await openDenoKvBell({ runtime });
  // Due while the disk is full: taking it from a queue on disk would write.
  const early = ringOf(bell, "check/early", clock.now() + 1_500);
  const commits = await fill(kv);
  // The file system's small remainders go too.
  await Deno.writeFile(join(folder, "last"), new Uint8Array(1024 ** 2)).catch(() => {});
  await early;
  const { rings, worstMs, refused } = await ringOn(bell, kv);
  await Deno.remove(ballast);
  await Deno.remove(join(folder, "last"));
  const again = await kv.commit(new Change().set(key<string>("after"), "room"));
  await bell.close();
  kv.close();
  console.log(
    `full after ${commits} commits; ${rings} rings in ${seconds} s, at worst ${worstMs} ms late; ` +
      `${refused} commits refused; ${again ? "writes again" : "does not write again"}`,
  );
  return rings > 0 && worstMs < MOST_LATE_MS && refused > 0 && again !== null;
}

/** Runs this script again on a small file system, so that one process is left to report if the other ends. */
async function checkOnSmallDisk(): Promise<number> {
  const ended = await onSmallDisk(8, async (folder) => {
    const args = ["run", "-A", "--quiet", import.meta.filename!, ...Deno.args, "--in", folder];
    return await new Deno.Command(Deno.execPath(), { args }).spawn().status;
  });
  if (ended === null) {
    console.log("skipped: no tmpfs could be mounted here");
    return 3;
  }
  const { code, signal } = ended;
  if (code > 1) console.log(`the process ended: ${signal ?? `exit ${code}`}`);
  return code === 0 ? 0 : 1;
}

Deno.exit(inside !== undefined ? await check(inside) ? 0 : 1 : await checkOnSmallDisk());
