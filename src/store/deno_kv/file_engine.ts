/** The file engine of Deno KV, which is SQLite. */
import { DatabaseSync } from "node:sqlite";
import { existsSync } from "node:fs";
import { exists, giveToOwner, unlessMissing } from "../../base/files.ts";
import { type Clock, sleep } from "../../runtime.ts";
import type { FileEngine, FileLock, FileWatch } from "../file_engine.ts";
import { Change, StoreError } from "../kv.ts";
import { storeKeys } from "../layers/rows.ts";
import { createArchive, openArchive } from "./archive.ts";
import { openDenoKv, storeError } from "./deno_kv.ts";

const LOG = "-wal";
/**
 * A mark beside a store's file as long as anybody has it open. SQLite removes its log when the last one closes, so a
 * mark without a log says that the log was taken away after a kill, with what was committed last: the file alone looks
 * like a whole, older store.
 */
const MARK = "-open";

export const denoKvFiles: FileEngine = {
  async open(path, options) {
    const { clock, log } = options.runtime;
    const isMissing = await isLogMissing(path);
    await assertSound(path, clock);
    const kv = await openDenoKv(path, options);
    await mark(path);
    if (isMissing) {
      log.error(
        { path: path + LOG },
        "the store's log was removed after a kill: what was accepted, received and reported last may be lost",
      );
      await kv.commit(new Change().set(storeKeys.logMissing(), clock.now())).catch(() => {});
    }
    const close = () => {
      kv.close();
      unmark(path);
    };
    return { ...kv, close };
  },
  tryLock,
  watch,
  leftovers: (path) => [LOG, "-shm", "-journal"].map((suffix) => path + suffix),
  forget: (path) => unlessMissing(Deno.remove(path + MARK)),
  createArchive,
  openArchive,
  storeError,
};

/** Resolves to whether the store's log is missing. Asked before the file is opened, which begins another log. */
async function isLogMissing(path: string): Promise<boolean> {
  return await exists(path + MARK) && await exists(path) && !await exists(path + LOG);
}

/** Marks the store as open. Without the mark, on a full disk, a missing log would not be noticed. */
async function mark(path: string): Promise<void> {
  try {
    (await Deno.open(path + MARK, { create: true, write: true, mode: 0o600 })).close();
    await giveToOwner(path + MARK);
  } catch {
    // As said.
  }
}

/** Removes the mark if this close was the last one. */
function unmark(path: string): void {
  if (existsSync(path + LOG) || !existsSync(path + MARK)) return;
  Deno.removeSync(path + MARK);
}

/** Locks held by this process. They must stay reachable: a garbage-collected database releases its lock. */
const held = new Set<DatabaseSync>();

/** Uses SQLite's own lock: unlike `Deno.FsFile.lock`, it can be tried without waiting on every Deno since 2.6. */
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

/** SQLite counts the commits of all other connections, in memory shared by the connections to a file. */
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
        // Another process holds the file exclusively, and may be writing.
      }
      return true;
    },
    close() {
      if (!isClosed) database.close();
      isClosed = true;
    },
  };
}

/** Larger files take too long to check at start: for them only the length is compared with the header. */
const CHECKED_BYTES = 64 * 1024 ** 2;
/** How long to wait for another process that is creating the store to write its first page. */
const FIRST_PAGE_TRIES = 20;
const FIRST_PAGE_PAUSE_MS = 100;

/**
 * Throws StoreError `unavailable` if the file is empty (which SQLite would take for a new store), truncated, damaged or
 * unreadable. Changes nothing. Must be called before this process opens the file in any other way: closing any
 * descriptor of it drops the process's locks.
 */
async function assertSound(path: string, clock: Clock): Promise<void> {
  let size = await sizeOf(path);
  for (let tries = 0; size === 0 && tries < FIRST_PAGE_TRIES; tries++) {
    await sleep(clock, FIRST_PAGE_PAUSE_MS);
    size = await sizeOf(path);
  }
  if (size === null) return;
  const fault = size === 0 ? "it is empty" : faultOf(path, size);
  if (fault === null) return;
  const advice = "nothing was changed. Restore a backup into an empty folder, or move the file away to start afresh";
  throw new StoreError("unavailable", `${path} is damaged (${fault}): ${advice}`);
}

async function sizeOf(path: string): Promise<number | null> {
  return (await unlessMissing(Deno.stat(path)))?.size ?? null;
}

function walOf(path: string): number {
  try {
    return Deno.statSync(path + LOG).size;
  } catch {
    return 0;
  }
}

/** Describes what is wrong with the file; null if no fault was found. Throws StoreError if it cannot be read. */
function faultOf(path: string, size: number): string | null {
  try {
    using database = new DatabaseSync(path, { readOnly: true });
    const numberOf = (pragma: string) => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
    if (size > CHECKED_BYTES) {
      const pages = numberOf("page_count") * numberOf("page_size");
      // Pages in the write-ahead log may not be in the file yet.
      return walOf(path) === 0 && size < pages ? "it is cut short" : null;
    }
    const said = String(Object.values(database.prepare("PRAGMA quick_check(1)").get() ?? {})[0]);
    return said === "ok" ? null : said.split("\n").join(" ");
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    // Another process holds the file for the moment; opening waits for it.
    if (/locked|busy/i.test(text)) return null;
    if (/malformed|not a database/i.test(text)) return text;
    // The file may be sound, since SQLite needs disk space even to read. But opening it with Deno KV would end the
    // process.
    const advice = "is the disk full or failing, or the file another user's? Nothing was changed";
    throw new StoreError("unavailable", `${path} cannot be opened (${text}): ${advice}`, { cause: error });
  }
}
