/** Maintenance by operators: backups, the doctor's checks, and the newest entries of the log. */
import { join } from "node:path";
import { unlessMissing } from "../../base/files.ts";
import { BACKUPS_KEPT, backupTime } from "../../data/kept_backups.ts";
import { dataKeys } from "../../data/rows.ts";
import { notFound } from "../../errors.ts";
import { recentEntries } from "../../ops/log.ts";
import type { Parts } from "./parts.ts";

const BACKUPS = "/operator/backups";

export function addMaintenance({ guard, kv, run, backupDir: folder, dataDir, runtime: { log } }: Parts): void {
  /** Whether a backup is being made, and why the last one failed; null if it did not. */
  let isRunning = false;
  let failure: string | null = null;

  async function make(): Promise<void> {
    isRunning = true;
    failure = null;
    try {
      // Only this one: a mistyped path must not become a folder on the wrong disk.
      if (dataDir !== null && folder === join(dataDir, "backups")) {
        await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      }
      await run(["backup", "--into", folder]);
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
      log.warn({ reason: failure }, "the backup that was asked for in the panel failed");
    } finally {
      isRunning = false;
    }
  }

  async function view() {
    const backups: { name: string; at: number; bytes: number }[] = [];
    for (const { name } of await unlessMissing(Array.fromAsync(Deno.readDir(folder))) ?? []) {
      const at = backupTime(name);
      const found = at === null ? null : await unlessMissing(Deno.stat(join(folder, name)));
      if (at !== null && found) backups.push({ name, at, bytes: found.size });
    }
    backups.sort((a, b) => b.at - a.at);
    const { value: lastAt } = await kv.get(dataKeys.backedUpAt());
    return { folder, kept: BACKUPS_KEPT, isRunning, failure, lastAt, backups };
  }

  guard.operator({ method: "GET", path: BACKUPS }, async () => ({ data: await view() }));

  // Answers before the backup is made, which may take longer than a browser waits.
  guard.operator({ method: "POST", path: BACKUPS }, async ({ did }) => {
    if (!isRunning) {
      void make();
      await did("backup_made");
    }
    return { data: await view() };
  });

  guard.operator({ method: "GET", path: `${BACKUPS}/:name` }, async ({ param, did }) => {
    const name = param("name");
    const file = backupTime(name) === null ? null : await unlessMissing(Deno.open(join(folder, name)));
    if (!file) throw notFound("backup");
    const { size } = await file.stat();
    await did("backup_downloaded");
    return new Response(file.readable, {
      headers: {
        "content-type": "application/octet-stream",
        "content-length": String(size),
        "content-disposition": `attachment; filename="${name}"`,
        "cache-control": "no-store",
      },
    });
  });

  guard.operator({ method: "POST", path: "/operator/doctor" }, async () => ({ data: await run(["doctor"]) }));

  // `least`: the lowest level, as pino numbers them.
  guard.operator({ method: "GET", path: "/operator/log" }, ({ query }) => {
    const least = Number(query("least") ?? 0);
    const entries = recentEntries(log).map((entry) => JSON.parse(entry)).filter(({ level }) => level >= least);
    return Promise.resolve({ data: entries.sort((a, b) => b.time - a.time) });
  });
}
