/** One gateway a data folder: two would both keep its lines connected, and throw each other out for ever (440). */
import { join } from "node:path";
import { giveToOwner } from "../base/files.ts";
import { OperatorError } from "../errors.ts";
import type { FileEngine, FileLock } from "../store/file_engine.ts";
import { inDataFolder } from "./data_folder.ts";

const FILE = "gateway.lock";

/** Another gateway runs on the data, or a restore does. */
export class AlreadyRunning extends OperatorError {
  readonly code = "already_running";
  override name = "AlreadyRunning";

  constructor(place: string, advice: string) {
    super(`another gateway already runs on ${place}: ${advice}`);
  }
}

/**
 * Takes the folder for this gateway until it is released or the process ends, however it ends. Throws AlreadyRunning
 * at once, and OperatorError where the system refuses the folder. Commands do not take it: they work beside the gateway.
 * Only a restore does, which needs the folder alone.
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
