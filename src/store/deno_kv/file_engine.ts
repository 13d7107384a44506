/** Deno KV's engine for one file, which is SQLite's. */
import { DatabaseSync } from "node:sqlite";
import type { FileEngine, FileLock, FileWatch } from "../file_engine.ts";
import { createArchive, openArchive } from "./archive.ts";
import { openDenoKv } from "./deno_kv.ts";
import { assertSound } from "./sound_file.ts";
import { storeError } from "./store_error.ts";

export const denoKvFiles: FileEngine = {
  async open(path, options) {
    await assertSound(path, options.runtime.clock);
    return await openDenoKv(path, options);
  },
  tryLock,
  watch,
  leftovers: (path) => ["-wal", "-shm", "-journal"].map((suffix) => path + suffix),
  createArchive,
  openArchive,
  storeError,
};

/** Locks that are held: a database that is collected as garbage would let go of its lock. */
const held = new Set<DatabaseSync>();

/** SQLite's own lock: unlike `Deno.FsFile.lock` it can be tried without waiting on every Deno since 2.6. */
async function tryLock(path: string): Promise<FileLock | null> {
  (await Deno.open(path, { create: true, write: true, mode: 0o600 })).close();
  const database = new DatabaseSync(path);
  try {
    database.exec("PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (error instanceof Error && /locked/.test(error.message)) return null;
    throw storeError(error);
  }
  held.add(database);
  return { release: () => void (held.delete(database) && database.close()) };
}

/** SQLite itself counts the commits of all other connections, in memory that those on one file share. */
function watch(path: string): FileWatch {
  const database = new DatabaseSync(path, { readOnly: true });
  const version = database.prepare("PRAGMA data_version");
  let last: unknown;
  let isClosed = false;
  return {
    hasChanged() {
      try {
        const [now] = Object.values(version.get() ?? {});
        if (now === last) return false;
        last = now;
      } catch {
        // Another process has the file for itself: nobody knows what it writes.
      }
      return true;
    },
    close() {
      if (!isClosed) database.close();
      isClosed = true;
    },
  };
}
