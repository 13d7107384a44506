/**
 * A data folder as the place of one process on a shared store: whoever starts there again knows that the one before it is
 * gone, without waiting for its silence. It writes two files, and does without where it cannot.
 */
import { join } from "node:path";
import type { Runtime } from "../runtime.ts";
import type { FileEngine, FileLock } from "../store/file_engine.ts";

/** What one process at a time has, and the next one there finds. */
export interface Place {
  /** The member that was here last: as this process is here now, that one is gone. */
  last(): Promise<string | null>;
  remember(id: string): Promise<void>;
}

const LOCK = "member.lock";
const FILE = "member";

/** The folder as this process's place until it is released, or the process ends; null when another has it. */
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
    log.info({ error: String(error) }, "the data folder cannot be written: a restart is met as a process that is new");
    return null;
  }
}
