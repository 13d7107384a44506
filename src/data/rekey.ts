/**
 * Rewrites what is sealed: everything under another secret key, or the contents of an account that opted in or out.
 *
 * The secret key is changed while no gateway runs. Every value that the old key opens was sealed with it, so no room has
 * to list its sealed values. If interrupted, the change continues when it is run again; until it has finished, nothing
 * else opens the data.
 */
import { Plans } from "../account/plans.ts";
import { CACHE_MS } from "../account/callers.ts";
import { batchesOf } from "../base/batches.ts";
import { membersAtWork } from "../cluster/member.ts";
import { AlreadyRunning, begin, type DataConfig, type OpenOptions, pathsOf, placeOf } from "./data_folder.ts";
import { type Migration, schemaVersionOf } from "./migrate.ts";
import { dataKeys } from "./rows.ts";
import {
  adoptNextKey,
  fitsSecret,
  nextSecretKey,
  prove,
  secretKey,
  secretKeyError,
  wrongSecretKey,
} from "./secret_key.ts";
import { type Clock, type Runtime, sleep } from "../runtime.ts";
import { Change, isRow, type Key, type KeyPart, type Mutation, type Row } from "../store/kv.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";
import { accountNamedBy } from "../store/layers/sealed_contents.ts";
import { COMMIT_LIMITS, writeMany } from "../store/limits.ts";
import { makeSeal, sealKey, unsealed } from "../store/seal.ts";

const OTHER_KEY = "the data is being re-encrypted under another new key, and that was not finished: " +
  "run `paloma rekey` again with that key";

/** A commit of this size takes a few milliseconds of disk time. */
const LIMITS = { ...COMMIT_LIMITS, mutations: 200, bytes: COMMIT_LIMITS.bytes / 2 };
/** Of contents: each row is checked, so that no concurrent change is overwritten. */
const CONTENTS_A_COMMIT = 8;

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
  runtime: Pick<Runtime, "random">;
  migrations: readonly Migration[];
  /** The secrets, as text. */
  from: string;
  to: string;
}

/**
 * Resolves to the number of rows re-encrypted, 0 if an earlier run has finished; null, with nothing changed, if `from`
 * is not the key of this data. Throws StoreError, and OperatorError, also if an earlier run has begun with
 * another new key, under which some of the data is already.
 */
export async function rekey(kv: ChunkedKv, { runtime, migrations, from, to }: RekeyOptions): Promise<number | null> {
  const old = makeSeal(sealKey(from), runtime.random);
  const next = makeSeal(sealKey(to), runtime.random);
  if (!await fitsSecret(kv, old)) return await fitsSecret(kv, next) ? 0 : null;
  // Not migrated here: the contents that accounts have sealed cannot be read in these rows.
  await schemaVersionOf(kv, migrations);
  const isBegun = isRow(await kv.get(dataKeys.rekeying()));
  if (isBegun && !await fitsSecret(kv, next, dataKeys.rekeying())) throw secretKeyError(OTHER_KEY);
  await kv.commit(prove(new Change(), next, dataKeys.rekeying()));
  // Bytes that the old key does not open were never sealed, or are already re-encrypted.
  const reseal = (bytes: Uint8Array) => {
    const plain = unsealed(old, bytes);
    return plain ? next.seal(plain) : bytes;
  };
  const count = await resealAll(kv, reseal);
  await kv.commit(prove(new Change(), next).delete(dataKeys.rekeying()));
  return count;
}

async function resealAll(kv: ChunkedKv, reseal: (sealed: Uint8Array) => Uint8Array): Promise<number> {
  async function* rows(): AsyncGenerator<Mutation> {
    for await (const { key, value } of kv.rows()) {
      // The proof of the key is rewritten last.
      const changed = isProof(key) ? value : resealed(value, reseal);
      if (changed !== value) yield { kind: "set", key, value: changed };
    }
  }
  return await writeMany(kv, rows(), { limits: LIMITS });
}

function isProof(key: Key): boolean {
  return dataKeys.secretCheck().every((part, i) => part === key[i]);
}

/** Returns the value with every sealed part re-encrypted; the value itself if there is none. */
function resealed(value: unknown, reseal: (sealed: Uint8Array) => Uint8Array): unknown {
  if (value instanceof Uint8Array) return reseal(value);
  if (Array.isArray(value)) {
    const changed = value.map((item) => resealed(item, reseal));
    return changed.some((item, i) => item !== value[i]) ? changed : value;
  }
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const members = Object.entries(value);
  const changed = members.map(([name, item]): [string, unknown] => [name, resealed(item, reseal)]);
  return changed.some(([, item], i) => item !== members[i]![1]) ? Object.fromEntries(changed) : value;
}

/**
 * Rewrites every row of the account in the families after it opted in or out, also while a gateway runs; resolves to
 * their number. If interrupted, it can be started again. Rows that change in the meantime are already written as chosen.
 */
export async function rewriteContents(
  kv: ChunkedKv,
  { accountId, families, clock }: { accountId: string; families: ReadonlySet<KeyPart>; clock: Clock },
): Promise<number> {
  // Waits until every process knows the choice.
  await sleep(clock, 2 * CACHE_MS);
  let count = 0;

  async function write(some: readonly Row<unknown>[]): Promise<boolean> {
    const change = new Change();
    for (const row of some) change.check(row).set(row.key, row.value);
    if (await kv.commit(change) === null) return false;
    count += some.length;
    return true;
  }

  async function* ofAccount(): AsyncGenerator<Row<unknown>> {
    for await (const row of kv.rows()) {
      if (families.has(row.key[0]!) && accountNamedBy(row.value) === accountId) yield row;
    }
  }

  for await (const rows of batchesOf(ofAccount(), CONTENTS_A_COMMIT)) {
    // After a conflict, one by one: rows that fail again have changed, and so are already written as chosen.
    if (!await write(rows)) { for (const row of rows) await write([row]); }
  }
  return count;
}
