/** Allows one gateway per data folder: two would connect the same lines and replace each other forever (440). */
import { join } from "node:path";
import { giveToOwner } from "../base/files.ts";
import { OperatorError } from "../errors.ts";
import type { FileEngine, FileLock } from "../store/file_engine.ts";
import { inDataFolder } from "./data_folder.ts";

const FILE = "gateway.lock";

/** Another gateway, or a restore, is using the data. */
export class AlreadyRunning extends OperatorError {
  readonly code = "already_running";
  override name = "AlreadyRunning";

  constructor(place: string, advice: string) {
    super(`another gateway already runs on ${place}: ${advice}`);
  }
}

/**
 * Locks the folder until the lock is released or the process ends, in whatever way. Does not wait: throws
 * AlreadyRunning at once, and OperatorError if the system refuses access. Most commands do not lock, because they work
 * beside the gateway; those that need the folder alone do, such as a restore.
 */
export async function lockGateway(dataDir: string, engine: Pick<FileEngine, "tryLock">): Promise<FileLock> {
  const lock = await inDataFolder(dataDir, async () => {
    await Deno.mkdir(dataDir, { recursive: true, mode: 0o700 });
    const taken = await engine.tryLock(join(dataDir, FILE));
    if (taken !== null) await giveToOwner(join(dataDir, FILE));
    return taken;
  });
  if (lock !== null) return lock;
  const place = `the data folder ${dataDir} (or a restore)`;
  throw new AlreadyRunning(place, "stop it first, or give this one its own folder");
}
