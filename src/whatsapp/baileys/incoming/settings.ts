/**
 * The settings that an account's devices share ("app state"). The line needs only one of them: the salt for tokens
 * (`cstoken`) to chats whose other side has given none. The library queries the settings when the network announces a
 * change, but does not know this one. So every answer is read here, whoever sent the query.
 *
 * Each setting is identified by a keyed hash of its index, so that only the one wanted is decrypted.
 */
import { Buffer } from "node:buffer";
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import PQueue from "p-queue";
import { aesDecrypt, type BinaryNode, getBinaryNodeChild, proto } from "@whiskeysockets/baileys";
import { detached } from "../../../base/retry.ts";
import type { AuthState } from "../auth_state.ts";
import type { Runtime } from "../../../runtime.ts";
import type { MediaHost } from "../media_host.ts";
import { bytesIn, childrenOf, iq } from "../stanza.ts";
import { readFields, SALT_ID, wholeFile } from "./history.ts";

const COLLECTION = "regular_high";
const SALT_INDEX = JSON.stringify(["nct_salt_sync"]);
/**
 * Field numbers in SyncActionData, in SyncActionValue (missing from the library's schema), and in the setting itself.
 */
const VALUE = 2;
const NCT_SALT = 80;
const SALT = 1;

/** Id of the row that records that the network was asked. */
const ASKED_ID = "asked";
const KEY_BYTES = 32;
const MAC_BYTES = 32;
const REMOVE = proto.SyncdMutation.SyncdOperation.REMOVE;

interface SettingsOptions {
  auth: Pick<AuthState, "keys" | "get">;
  host: MediaHost;
  query(node: BinaryNode): Promise<unknown>;
  runtime: Pick<Runtime, "clock" | "log">;
}

/** A change to a setting: its stored record, and whether the setting was removed. */
interface Mutation {
  isRemoved: boolean;
  record: proto.ISyncdRecord | null | undefined;
}

export type Settings = ReturnType<typeof makeSettings>;

export function makeSettings({ auth, host, query, runtime: { clock, log } }: SettingsOptions) {
  /** One answer at a time, so that a slow file does not undo a later answer. */
  const answers = new PQueue({ concurrency: 1 });
  const logFailure = (failure: { error: string }) => log.debug(failure, "an account's settings could not be read");

  /** The mutations of a collection, oldest first. Throws if a part or its file is invalid. */
  async function* mutationsOf(nodes: ReturnType<typeof partsOf>) {
    const fileOf = (blob: proto.IExternalBlobReference) =>
      wholeFile({ kind: "md-app-state", file: { ...blob, fileLength: blob.fileSizeBytes } }, { host, clock });
    if (nodes.snapshot) {
      const blob = proto.ExternalBlobReference.decode(bytesIn(nodes.snapshot));
      const { records } = proto.SyncdSnapshot.decode(await fileOf(blob));
      yield* records.map((record): Mutation => ({ isRemoved: false, record }));
    }
    for (const patch of nodes.patches) {
      const { mutations, externalMutations } = proto.SyncdPatch.decode(bytesIn(patch));
      const more = externalMutations ? proto.SyncdMutations.decode(await fileOf(externalMutations)).mutations : [];
      for (const { operation, record } of [...mutations, ...more]) {
        yield { isRemoved: operation === REMOVE, record } satisfies Mutation;
      }
    }
  }

  async function keysOf(id: string): Promise<SettingKeys | null> {
    const { [id]: stored } = await auth.keys.get("app-state-sync-key", [id]);
    return stored?.keyData?.length ? expand(stored.keyData) : null;
  }

  async function take(nodes: ReturnType<typeof partsOf>): Promise<void> {
    const known = new Map<string, Promise<SettingKeys | null>>();
    let salt: Uint8Array | null | undefined;
    for await (const { isRemoved, record } of mutationsOf(nodes)) {
      const id = Buffer.from(record?.keyId?.id ?? []).toString("base64");
      if (!known.has(id)) known.set(id, keysOf(id));
      const expanded = await known.get(id);
      if (!record || !expanded || !isSame(record.index?.blob, expanded.saltIndex)) continue;
      salt = isRemoved ? null : saltIn(record, expanded);
    }
    if (salt === undefined) return;
    await auth.keys.set({ "nct-salt": { [SALT_ID]: salt && Buffer.from(salt) } });
    log.debug({ salt: salt !== null }, "the salt of an account's settings was taken");
  }

  async function ask(): Promise<void> {
    if (await auth.get("nct-salt", SALT_ID) || await auth.get("nct-salt", ASKED_ID)) return;
    const collection = { tag: "collection", attrs: { name: COLLECTION, version: "0", return_snapshot: "true" } };
    await query(iq({ type: "set", xmlns: "w:sync:app:state" }, { tag: "sync", attrs: {}, content: [collection] }));
    // If the account has no salt yet, a notification announces it later.
    await auth.keys.set({ "nct-salt": { [ASKED_ID]: true } });
  }

  return {
    /** Takes the salt from an answer about settings. Must be called before the library reads the answer. */
    watch(stanza: BinaryNode): void {
      if (stanza.tag !== "iq" || stanza.attrs.type !== "result") return;
      for (const collection of collectionsIn(stanza)) {
        if (collection.attrs.name !== COLLECTION) continue;
        const parts = partsOf(collection);
        void detached(answers.add(() => take(parts)), logFailure);
      }
    },
    /** Queries the settings once, if the salt is unknown. Never rejects. */
    ask: () => detached(ask(), logFailure),
  };
}

/** Runs work for which the library may download files of settings. */
export type WithFiles = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * Leaves the files in answers about settings alone: Baileys 7.0.0-rc14 downloads them itself, bypassing the line's proxy
 * and without a time limit, and the line sends nothing meanwhile. Only to change the account's name does the library
 * need their content.
 */
export function makeFileFilter() {
  let isWanted = false;

  return {
    /** Removes external files from an answer about settings. Must be called before the library reads the answer. */
    watch(stanza: BinaryNode): void {
      if (stanza.tag !== "iq" || isWanted) return;
      for (const collection of collectionsIn(stanza)) {
        const { snapshot, patches } = partsOf(collection);
        if (!snapshot && patches.every(isInline)) continue;
        // If asked for more patches, the network would send the same ones again.
        delete collection.attrs.has_more_patches;
        collection.content = [];
      }
    },
    async withFiles<T>(work: () => Promise<T>): Promise<T> {
      isWanted = true;
      try {
        return await work();
      } finally {
        isWanted = false;
      }
    },
  };
}

function isInline({ content }: BinaryNode): boolean {
  try {
    return !(content instanceof Uint8Array) || !proto.SyncdPatch.decode(content).externalMutations;
  } catch {
    return true; // the library reports what is wrong with it
  }
}

function collectionsIn(stanza: BinaryNode): BinaryNode[] {
  return childrenOf(getBinaryNodeChild(stanza, "sync"), "collection");
}

function partsOf(collection: BinaryNode): { snapshot: BinaryNode | undefined; patches: BinaryNode[] } {
  const [snapshot] = childrenOf(collection, "snapshot");
  const [holder = collection] = childrenOf(collection, "patches");
  return { snapshot, patches: childrenOf(holder, "patch") };
}

interface SettingKeys {
  /** The index of the salt's setting, hashed under this key. */
  saltIndex: Uint8Array;
  valueKey: Uint8Array;
  macKey: Uint8Array;
}

function expand(keyData: Uint8Array): SettingKeys {
  const all = new Uint8Array(hkdfSync("sha256", keyData, new Uint8Array(0), "WhatsApp Mutation Keys", 5 * KEY_BYTES));
  const [indexKey, valueKey, macKey] = [0, 1, 2].map((at) => all.subarray(at * KEY_BYTES, (at + 1) * KEY_BYTES));
  const saltIndex = createHmac("sha256", indexKey!).update(SALT_INDEX).digest();
  return { saltIndex, valueKey: valueKey!, macKey: macKey! };
}

/** Decrypts the salt. Throws if the record was not encrypted with the key, or holds no salt. */
function saltIn(record: proto.ISyncdRecord, { valueKey, macKey }: SettingKeys): Uint8Array {
  const blob = record.value?.blob ?? new Uint8Array(0);
  const encrypted = blob.subarray(0, -MAC_BYTES);
  const about = Buffer.concat([Uint8Array.of(1), record.keyId!.id!]);
  const length = new Uint8Array(8).with(7, about.length);
  const mac = createHmac("sha512", macKey).update(about).update(encrypted).update(length).digest();
  if (!isSame(mac.subarray(0, MAC_BYTES), blob.subarray(-MAC_BYTES))) throw new RangeError("a setting was altered");
  const salt = [VALUE, NCT_SALT, SALT].reduce(fieldOf, aesDecrypt(encrypted, valueKey));
  if (salt.length === 0) throw new RangeError("a setting holds no salt");
  return salt;
}

function fieldOf(bytes: Uint8Array, wanted: number): Uint8Array {
  let found: Uint8Array = new Uint8Array(0);
  readFields(bytes, (field, value) => {
    if (field === wanted && value instanceof Uint8Array) found = value;
  });
  return found;
}

function isSame(one: Uint8Array | null | undefined, other: Uint8Array): boolean {
  return one?.length === other.length && timingSafeEqual(one, other);
}
