/**
 * Re-encrypts everything sealed under another secret key, while no gateway runs. Every value that the old key opens was
 * sealed with it, so no room has to list its sealed values. If interrupted, it continues when it is run again; until it
 * has finished, nothing else opens the data.
 */
import { Plans } from "../account/plans.ts";
import { membersAtWork } from "../cluster/at_work.ts";
import type { Runtime } from "../runtime.ts";
import { Change, type Key } from "../store/kv.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";
import { COMMIT_LIMITS } from "../store/limits.ts";
import { sizeBound } from "../store/layers/size.ts";
import { makeSeal, SealError, sealKey } from "../store/seal.ts";
import { begin, type DataConfig, type OpenOptions, pathsOf, placeOf } from "./data_folder.ts";
import { AlreadyRunning } from "./gateway_lock.ts";
import { migrate, type Migration } from "./migrate.ts";
import { dataKeys } from "./rows.ts";
import { adoptNextKey, fitsSecret, nextSecretKey, prove, secretKey, wrongSecretKey } from "./secret_key.ts";

/** A commit of this size takes a few milliseconds of disk time. */
const ROWS_A_COMMIT = 200;

/**
 * Re-encrypts the data under the key `to`, or, if that is null, under a new key of the folder's own. Nothing else may
 * use the data in the meantime. Resolves to the number of rows. Throws as `openDataFolder` does, and AlreadyRunning.
 */
export async function rekeyDataFolder(
  config: DataConfig,
  { to, ...options }: Omit<OpenOptions, "contents"> & { to: string | null },
): Promise<number> {
  const { runtime, migrations } = options;
  const { store: sealed } = pathsOf(config.dataDir);
  const from = await secretKey(config.dataDir, config.secretKey, { random: runtime.random, sealed });
  const next = to ?? await nextSecretKey(config.dataDir, runtime);
  const kv = await options.openStore();
  try {
    // A folder is locked instead. Values written under the old key in the meantime would be unreadable.
    if (config.store && (await membersAtWork(kv, runtime.clock)).length > 0) {
      throw new AlreadyRunning(placeOf(config), "stop every worker, api and serve on it first");
    }
    await begin(kv, { seal: makeSeal(sealKey(from), runtime.random), plans: new Plans(kv), migrations });
    const count = await rekey(kv, { runtime, migrations, from, to: next });
    if (count === null) throw wrongSecretKey(config, placeOf(config));
    if (to === null) await adoptNextKey(config.dataDir);
    return count;
  } finally {
    kv.close();
  }
}

interface RekeyOptions {
  runtime: Pick<Runtime, "log" | "random">;
  migrations: readonly Migration[];
  /** The secrets, as text. */
  from: string;
  to: string;
}

/**
 * Resolves to the number of rows re-encrypted, 0 if an earlier run has finished; null, with nothing changed, if `from`
 * is not the key of this data. Throws StoreError, SchemaTooNew.
 */
export async function rekey(kv: ChunkedKv, { runtime, migrations, from, to }: RekeyOptions): Promise<number | null> {
  const old = makeSeal(sealKey(from), runtime.random);
  const next = makeSeal(sealKey(to), runtime.random);
  if (!await fitsSecret(kv, old)) return await fitsSecret(kv, next) ? 0 : null;
  await migrate(kv, { runtime, migrations });
  await kv.commit(new Change().set(dataKeys.rekeying(), true));
  const count = await sealAnew(kv, (value) => next.seal(old.open(value)));
  await kv.commit(prove(new Change(), next).delete(dataKeys.rekeying()));
  return count;
}

async function sealAnew(kv: ChunkedKv, anew: (sealed: Uint8Array) => Uint8Array): Promise<number> {
  let count = 0;
  let change = new Change();
  let bytes = 0;
  async function commit(): Promise<void> {
    await kv.commit(change);
    count += change.mutations.length;
    change = new Change();
    bytes = 0;
  }
  for await (const { key, value } of kv.rows()) {
    // The proof of the key is rewritten last.
    const turned = isProof(key) ? value : turn(value, anew);
    if (turned === value) continue;
    const size = sizeBound(turned);
    if (change.mutations.length === ROWS_A_COMMIT || bytes + size > COMMIT_LIMITS.bytes / 2) await commit();
    change.set(key, turned);
    bytes += size;
  }
  if (change.mutations.length > 0) await commit();
  return count;
}

function isProof(key: Key): boolean {
  return dataKeys.secretCheck().every((part, i) => part === key[i]);
}

/** Returns the value with every sealed part re-encrypted; the value itself if there is none. */
function turn(value: unknown, anew: (sealed: Uint8Array) => Uint8Array): unknown {
  if (value instanceof Uint8Array) return turnedBytes(value, anew);
  if (Array.isArray(value)) {
    const turned = value.map((item) => turn(item, anew));
    return turned.some((item, i) => item !== value[i]) ? turned : value;
  }
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const turned = Object.entries(value).map(([name, item]) => ({ name, item, anew: turn(item, anew) }));
  if (turned.every(({ item, anew }) => item === anew)) return value;
  return Object.fromEntries(turned.map(({ name, anew }) => [name, anew]));
}

/** Re-encrypts bytes. Those that the old key does not open were never sealed or are already re-encrypted, and stay. */
function turnedBytes(bytes: Uint8Array, anew: (sealed: Uint8Array) => Uint8Array): Uint8Array {
  try {
    return anew(bytes);
  } catch (error) {
    if (error instanceof SealError) return bytes;
    throw error;
  }
}
