/**
 * The opened data, shared by the gateway and the commands: the store in the folder or on a server, its encryption, the
 * accounts in it, and the lock of the gateway that uses it.
 */
import { join } from "node:path";
import { type Accounts, makeAccounts } from "../account/accounts.ts";
import { Callers, makeIsSealedAccount } from "../account/callers.ts";
import { Plans } from "../account/plans.ts";
import { urlsOfHosts } from "../base/database_url.ts";
import { giveToOwner } from "../base/files.ts";
import { errorCode } from "../base/retry.ts";
import type { Config } from "../config.ts";
import { migrate, type Migration, newestOf } from "./migrate.ts";
import { dataKeys } from "./rows.ts";
import { fitsSecret, hasNextKey, prove, secretKey, secretKeyError, wrongSecretKey } from "./secret_key.ts";
import { OperatorError } from "../errors.ts";
import type { Clock, Runtime } from "../runtime.ts";
import type { FileEngine, FileLock } from "../store/file_engine.ts";
import { Change, isRow, type KeyPart, type Kv } from "../store/kv.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";
import { withSealedContents } from "../store/layers/sealed_contents.ts";
import { makeSeal, type Seal, sealKey } from "../store/seal.ts";

export interface DataFolder {
  kv: ChunkedKv;
  seal: Seal;
  /** The 32 bytes from which encryption at rest and link signatures derive. */
  key: Uint8Array;
  plans: Plans;
  accounts: Accounts;
  callers: Callers;
  close(): void;
}

/** The parts of a data folder that are backed up. */
export interface DataPaths {
  store: string;
  media: string;
}

export function pathsOf(dataDir: string): DataPaths {
  return { store: join(dataDir, "paloma.db"), media: join(dataDir, "media") };
}

/** The settings that name the data's place and its secret key. */
export type DataConfig = Pick<Config, "dataDir" | "secretKey"> & Partial<Pick<Config, "store">>;

/** Returns the place of the store for messages to the operator: without the login. */
export function placeOf({ dataDir, store = null }: Pick<DataConfig, "dataDir" | "store">): string {
  if (store === null) return dataDir;
  const urls = urlsOfHosts(store).map((url) => new URL(url));
  const { protocol, pathname } = urls[0]!;
  return `${protocol}//${urls.map(({ host }) => host).join(",")}${pathname}`;
}

const REFUSALS = new Set<unknown>(["EACCES", "EEXIST", "ENOENT", "ENOTDIR", "EPERM", "EROFS"]);

/** Runs a function that makes or opens files of the folder. Throws OperatorError if the system refuses access. */
export async function inDataFolder<T>(dataDir: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof Error && REFUSALS.has(errorCode(error)))) throw error;
    const message =
      `the data folder ${dataDir} cannot be used (${error.message}): it must be a folder that belongs to ` +
      "the user who runs this, with all that is in it; PALOMA_DATA_DIR (--data-dir) names another";
    throw new OperatorError("file_unusable", message, { cause: error });
  }
}

const UNFINISHED = "the secret key is being changed, and that was not finished: run `paloma rekey` again";

export interface OpenOptions {
  runtime: Runtime;
  /** Opens the store of the folder, or the one named in the settings. */
  openStore(): Promise<ChunkedKv>;
  /** Every step since version 1, in order. */
  migrations: readonly Migration[];
  /** The first key parts of the row families that an account may have sealed. */
  contents: ReadonlySet<KeyPart>;
}

/**
 * Throws OperatorError if the configured key is not that of the store, for callers that copy its rows without opening
 * them. Throws StoreError.
 */
export async function assertSecret(store: Kv, config: DataConfig, { random }: Runtime): Promise<void> {
  if (config.secretKey === null || !await isBegun(store)) return;
  if (!await fitsSecret(store, makeSeal(sealKey(config.secretKey), random))) {
    throw wrongSecretKey(config, placeOf(config));
  }
}

/**
 * Opens the folder, creating or migrating it if necessary. Throws StoreError, and OperatorError if the data was sealed
 * with another key (no row is written then), or is of a newer Paloma or of an interrupted restore.
 */
export async function openDataFolder(
  config: DataConfig,
  options: OpenOptions,
): Promise<DataFolder> {
  const { runtime, migrations, contents: families } = options;
  const { key, store } = await inDataFolder(config.dataDir, async () => {
    // With a shared store there may be no disk at all.
    if (!config.store) await Deno.mkdir(config.dataDir, { recursive: true, mode: 0o700 });
    const { store: sealed } = pathsOf(config.dataDir);
    const key = sealKey(await secretKey(config.dataDir, config.secretKey, { random: runtime.random, sealed }));
    return { key, store: await options.openStore() };
  });
  try {
    const seal = makeSeal(key, runtime.random);
    const isChosen = makeIsSealedAccount(store, runtime.clock);
    const kv = withSealedContents(store, { seal, families, isChosen });
    const plans = new Plans(kv);
    const found = await begin(store, { seal, plans, migrations });
    if (found !== null) {
      if (found.isRestoring) throw halfRestored(placeOf(config));
      const isRight = await fitsSecret(store, seal);
      if (isRight ? found.isRekeying : await hasNextKey(config)) throw secretKeyError(UNFINISHED);
      if (!isRight) throw wrongSecretKey(config, placeOf(config));
      await migrate(kv, { runtime, migrations });
      await plans.addDefaults();
    }
    const callers = new Callers({ kv, plans, clock: runtime.clock });
    const accounts = makeAccounts({ kv, seal, callers, runtime });
    return { kv, seal, key, plans, accounts, callers, close: () => kv.close() };
  } catch (error) {
    store.close();
    throw error;
  }
}

function halfRestored(place: string): OperatorError {
  const advice = "create the store again, empty, and restore again";
  return new OperatorError("half_restored", `a restore into ${place} is in progress or was interrupted: ${advice}`);
}

/** A store that has none of these rows is new. */
const FIRST_KEYS = [dataKeys.restoring(), dataKeys.rekeying(), dataKeys.schemaVersion(), dataKeys.secretCheck()];

/** Resolves to whether the store has been created, for callers that check before they open it. Throws StoreError. */
export async function isBegun(store: Kv): Promise<boolean> {
  return (await store.getMany<unknown>(FIRST_KEYS)).some(isRow);
}

/**
 * Writes the first rows of a new store in one commit: the proof of its key, its schema version and the default plans.
 * Resolves to null for a new store; otherwise to the operation in progress on it, if any. Of two concurrent first
 * starts, the second finds a store that is no longer new.
 */
export async function begin(
  store: Kv,
  { seal, plans, migrations }: { seal: Seal; plans: Plans } & Pick<OpenOptions, "migrations">,
): Promise<{ isRestoring: boolean; isRekeying: boolean } | null> {
  for (;;) {
    const slots = await store.getMany<unknown>(FIRST_KEYS);
    const [isRestoring, isRekeying] = slots.map(isRow);
    if (slots.some(isRow)) return { isRestoring: isRestoring!, isRekeying: isRekeying! };
    const change = new Change();
    for (const slot of slots) change.check(slot);
    prove(change, seal).set(dataKeys.schemaVersion(), newestOf(migrations));
    plans.putDefaults(change);
    if (await store.commit(change) !== null) return null;
  }
}

const GATEWAY_LOCK = "gateway.lock";

/** Another gateway, or a restore, is using the data: two would connect the same lines and replace each other forever. */
export class AlreadyRunning extends OperatorError {
  override name = "AlreadyRunning";

  constructor(place: string, advice: string) {
    super("already_running", `a gateway already runs on ${place}: ${advice}`);
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
    const taken = await engine.tryLock(join(dataDir, GATEWAY_LOCK));
    try {
      if (taken !== null) await giveToOwner(join(dataDir, GATEWAY_LOCK));
    } catch (error) {
      taken?.release();
      throw error;
    }
    return taken;
  });
  if (lock !== null) return lock;
  const place = `the data folder ${dataDir} (or a restore)`;
  throw new AlreadyRunning(place, "stop it first, or choose another folder");
}

/** Least time between two writes, because anyone may ask whether the gateway is ready. */
const PROBE_EVERY_MS = 1_000;

/**
 * Returns a check whether the store accepts writes: with a full disk, reads still succeed. It resolves once a write is
 * on disk, rejects if that fails, and hangs as long as the store does. Calls within a second share one write.
 */
export function makeProbe(kv: Kv, clock: Clock): () => Promise<void> {
  let last: { at: number; written: Promise<void> } | null = null;
  async function write(now: number): Promise<void> {
    await kv.commit(new Change().set(dataKeys.probed(), now));
  }
  return () => {
    const now = clock.now();
    if (last === null || now - last.at >= PROBE_EVERY_MS) {
      last = { at: now, written: write(now) };
      last.written.catch(() => {});
    }
    return last.written;
  };
}
