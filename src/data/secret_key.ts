/**
 * The secret behind encryption at rest: PALOMA_SECRET_KEY, or one generated once and kept in the data folder (promise
 * 6). A wrong key is detected before anything is written with it, by a small sealed row that only the right key opens.
 */
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { exists, giveToOwner, syncFolder, unlessMissing } from "../base/files.ts";
import type { Config } from "../config.ts";
import { OperatorError } from "../errors.ts";
import type { Random } from "../runtime.ts";
import type { Change, Kv } from "../store/kv.ts";
import { type Seal, unsealed } from "../store/seal.ts";
import { dataKeys } from "./rows.ts";

const FILE = "secret.key";
/** The next key, while everything is being re-encrypted. */
const NEXT_FILE = "secret.key.next";
const KEY_BYTES = 32;
/** Any text will do: that it can be unsealed is the proof. */
const PROOF = Buffer.from("paloma");

interface SecretKeyOptions {
  random: Random;
  /** Path of the data sealed with the key: if it exists, the key must exist too. Null for none. */
  sealed: string | null;
}

/** Returns the error of a key that is unreadable, missing although there is data, or not the data's, and what to do. */
export function secretKeyError(message: string): OperatorError {
  return new OperatorError("secret_key_wrong", message);
}

/**
 * Resolves to the secret as text: the configured one, otherwise the one in `dataDir`, which is created with mode 0600
 * if the folder is new. Concurrent processes get the same one. Throws OperatorError.
 */
export async function secretKey(
  dataDir: string,
  configured: string | null,
  options: SecretKeyOptions,
): Promise<string> {
  if (configured !== null) return configured;
  return await keyIn(dataDir, FILE, options);
}

/** Resolves to the key that will replace the folder's own, created once until `adoptNextKey`. Throws OperatorError. */
export async function nextSecretKey(dataDir: string, { random }: Pick<SecretKeyOptions, "random">): Promise<string> {
  return await keyIn(dataDir, NEXT_FILE, { random, sealed: null });
}

/** Whether there is a next key: the data may already be encrypted under it. */
export async function hasNextKey({ dataDir, secretKey }: Pick<Config, "dataDir" | "secretKey">): Promise<boolean> {
  return secretKey === null && await exists(join(dataDir, NEXT_FILE));
}

/** Replaces the folder's own key by the next one. */
export async function adoptNextKey(dataDir: string): Promise<void> {
  await Deno.rename(join(dataDir, NEXT_FILE), join(dataDir, FILE));
  await syncFolder(dataDir);
}

async function keyIn(dataDir: string, name: string, options: SecretKeyOptions): Promise<string> {
  const path = join(dataDir, name);
  await Deno.mkdir(dataDir, { recursive: true, mode: 0o700 });
  // The key is always created before the data.
  const isNeeded = options.sealed !== null && await exists(options.sealed);
  const file = await unlessMissing(Deno.open(path, { create: !isNeeded, read: true, write: true, mode: 0o600 }));
  if (file === null) throw keyGone(dataDir, options.sealed);
  try {
    // The first process holds the lock until the key is on disk; the lock of a dead process is released.
    await file.lock(true);
    if (Deno.build.os !== "windows") await Deno.chmod(path, 0o600);
    const found = (await Deno.readTextFile(path)).trim();
    if (found !== "") return checked(found, path);
    if (options.sealed !== null && await exists(options.sealed)) throw keyGone(dataDir, options.sealed);
    const made = options.random.bytes(KEY_BYTES).toHex();
    await Deno.writeTextFile(path, made + "\n");
    await giveToOwner(path);
    await file.sync();
    await syncFolder(dataDir);
    return made;
  } finally {
    file.close();
  }
}

/**
 * Whether `seal` has the key of this store, which must not be new, or, at another key, that of the proof there; false if
 * there is none. Throws StoreError.
 */
export async function fitsSecret(kv: Kv, seal: Seal, proof = dataKeys.secretCheck()): Promise<boolean> {
  const { value } = await kv.get(proof);
  return value !== null && unsealed(seal, value) !== null;
}

/** Adds the proof that the store's key is that of `seal`, or, at another key, what else `seal` is the key of. */
export function prove(change: Change, seal: Seal, proof = dataKeys.secretCheck()): Change {
  return change.set(proof, seal.seal(PROOF));
}

/** Returns the error for a key that is not the data's; it says where the key came from. */
export function wrongSecretKey(
  config: Pick<Config, "dataDir" | "secretKey"> & Partial<Pick<Config, "store">>,
  place: string,
): OperatorError {
  const path = join(config.dataDir, FILE);
  const [where, remedy] = config.secretKey === null
    ? [path, "put the original back, or set PALOMA_SECRET_KEY to the key that was used"]
    : [
      "PALOMA_SECRET_KEY (--secret-key)",
      `set it to the key that was used${!config.store ? `, or leave it out if that is in ${path}` : ""}`,
    ];
  return secretKeyError(
    `${where} is not the key that the data in ${place} was sealed with, and nothing was changed: ${remedy}`,
  );
}

function keyGone(dataDir: string, sealed: string | null): OperatorError {
  return secretKeyError(
    `${sealed} was sealed with a key that is not here: ` +
      `put ${FILE} back into ${dataDir}, or set PALOMA_SECRET_KEY to the key that was used`,
  );
}

function checked(key: string, path: string): string {
  if (/^[0-9a-f]{64}$/.test(key)) return key;
  throw secretKeyError(
    `${path} is damaged: put the original back, or set PALOMA_SECRET_KEY to the key that was used`,
  );
}
