/**
 * A data folder as the place of one process on a shared store: a process that starts there knows that its predecessor
 * is gone, without waiting for a timeout. It needs two files, and is optional: if they cannot be written, it is
 * skipped.
 */
import { join } from "node:path";
import type { Runtime } from "../runtime.ts";
import type { FileEngine, FileLock } from "../store/file_engine.ts";

/** Held by one process at a time; its successor finds the member id that it left. */
export interface Place {
  /** The member that was here before, which must be gone, since this process holds the place now. */
  last(): Promise<string | null>;
  remember(id: string): Promise<void>;
}

const LOCK = "member.lock";
const FILE = "member";

/**
 * Takes the folder as this process's place until it is released or the process ends; null if another process holds it.
 */
export async function takePlace(
  dataDir: string,
  { engine, runtime: { log } }: { engine: Pick<FileEngine, "tryLock">; runtime: Pick<Runtime, "log"> },
): Promise<Place & FileLock | null> {
  try {
    await Deno.mkdir(dataDir, { recursive: true, mode: 0o700 });
    const lock = await engine.tryLock(join(dataDir, LOCK));
    return lock && {
      last: () => Deno.readTextFile(join(dataDir, FILE)).catch(() => null),
      remember: (id) => Deno.writeTextFile(join(dataDir, FILE), id, { mode: 0o600 }).catch(() => {}),
      release: () => lock.release(),
    };
  } catch (error) {
    log.info(
      { error: String(error) },
      "the data folder cannot be written: leases of this process will outlive it by a timeout",
    );
    return null;
  }
}
