/**
 * Copies of data that need a name for a while, in folders below the system's temporary one. A folder is removed when its
 * work is done, or the process exits. What a killed process leaves is removed by the next one: nobody holds its lock.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exists, removedAtExit } from "../base/files.ts";
import type { FileEngine } from "../store/file_engine.ts";

const PREFIX = "paloma-copies-";
const LOCK = "lock";
/** Folders of this process: the system would drop the lock of one whose lock file is opened and closed again. */
const own = new Set<string>();

type Locks = Pick<FileEngine, "tryLock">;

/** Makes a folder that only this user can read. */
export async function makeCopyFolder(locks: Locks): Promise<Disposable & { readonly path: string }> {
  const path = await Deno.makeTempDir({ dir: tmpdir(), prefix: PREFIX });
  own.add(path);
  const lock = await locks.tryLock(join(path, LOCK));
  // Another process has just found it without a lock, and removes it.
  if (lock === null) return await makeCopyFolder(locks);
  const removed = removedAtExit(path);
  return {
    path,
    [Symbol.dispose]() {
      lock.release();
      removed[Symbol.dispose]();
      own.delete(path);
    },
  };
}

/** Removes the folders of killed processes. */
export async function removeLeftCopies(locks: Locks): Promise<void> {
  for await (const { name } of Deno.readDir(tmpdir())) {
    const path = join(tmpdir(), name);
    if (!name.startsWith(PREFIX) || own.has(path)) continue;
    // In another user's folder the lock may be a link to a file of ours.
    if ((await Deno.lstat(path).catch(() => null))?.uid !== Deno.uid() || !await exists(join(path, LOCK))) continue;
    const lock = await locks.tryLock(join(path, LOCK)).catch(() => null);
    if (lock === null) continue;
    await Deno.remove(path, { recursive: true }).catch(() => {});
    lock.release();
  }
}
