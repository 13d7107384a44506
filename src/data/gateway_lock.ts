/** One gateway a data folder: two would both keep its lines connected, and throw each other out for ever (440). */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

const FILE = "gateway.lock";

/** Locks that are held: a database that is collected as garbage would let go of its lock. */
const held = new Set<DatabaseSync>();

export interface GatewayLock {
  /** Calling it again is fine. */
  release(): Promise<void>;
}

/** Another gateway runs on the data folder, or a restore does. */
export class AlreadyRunning extends Error {
  override name = "AlreadyRunning";

  constructor(dataDir: string) {
    super(
      `another gateway already runs on the data folder ${dataDir} (or a restore): ` +
        "stop it first, or give this one its own folder",
    );
  }
}

/**
 * Takes the folder for this gateway until it is released or the process ends, however it ends. Throws AlreadyRunning
 * at once. Commands do not take it: they work beside the gateway. Only a restore does, which needs the folder alone.
 *
 * The lock is SQLite's on a file of its own: the system drops it with the process, also after `kill -9`, and unlike
 * `Deno.FsFile.lock` it can be tried without waiting on every Deno since 2.4.
 */
export async function lockGateway(dataDir: string): Promise<GatewayLock> {
  await Deno.mkdir(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, FILE);
  (await Deno.open(path, { create: true, write: true, mode: 0o600 })).close();
  const database = new DatabaseSync(path);
  try {
    database.exec("PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (error instanceof Error && /locked/.test(error.message)) throw new AlreadyRunning(dataDir);
    throw error;
  }
  held.add(database);
  return {
    release() {
      if (held.delete(database)) database.close();
      return Promise.resolve();
    },
  };
}
