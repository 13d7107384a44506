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
import { detached, unlessMalformed } from "../../../base/retry.ts";
import type { AuthState } from "../auth_state.ts";
import type { Runtime } from "../../../runtime.ts";
import type { MediaHost } from "../media_host.ts";
import { bytesIn, childrenOf, iq } from "../stanza.ts";
import type { FoundSetting } from "../../../inspect/inspection.ts";
import type { ReadOutside } from "../../../inspect/inspector.ts";
import { inside } from "../../../inspect/outside.ts";
import { bounded } from "./bounded.ts";
import { SALT_ID, wholeFile } from "./history_sync.ts";

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
/** The newest of an account's keys. */
const MOST_KEYS = 100;
/** What is longer lies in a file. Smaller, it may still be thousands of tiny records, which take milliseconds. */
const MOST_BYTES_INLINE = 128 * 1024;
const KEY_BYTES = 32;
const MAC_BYTES = 32;
const REMOVE = proto.SyncdMutation.SyncdOperation.REMOVE;

interface SettingsOptions {
  auth: Pick<AuthState, "keys" | "get" | "idsOf">;
  readOutside: ReadOutside;
  host: MediaHost;
  query(node: BinaryNode): Promise<unknown>;
  runtime: Pick<Runtime, "clock" | "log">;
}

export type Settings = ReturnType<typeof makeSettings>;

export function makeSettings({ auth, host, readOutside, query, runtime: { clock, log } }: SettingsOptions) {
  /** One answer at a time, so that a slow file does not undo a later answer. */
  const answers = new PQueue({ concurrency: 1 });
  const logFailure = (failure: { error: string }) => log.debug(failure, "an account's settings could not be read");

  /** The account's keys by id, of which there are few. */
  async function keysById(): Promise<Map<string, SettingKeys>> {
    const ids = (await auth.idsOf("app-state-sync-key")).slice(-MOST_KEYS);
    const stored = await auth.keys.get("app-state-sync-key", ids);
    return new Map(ids.flatMap((id) => {
      const { keyData } = stored[id] ?? {};
      return keyData?.length ? [[id, expand(keyData)] as const] : [];
    }));
  }

  /** The changes of the salt's setting in a collection, oldest first. Throws if a part or its file is invalid. */
  async function* changesIn(nodes: ReturnType<typeof partsOf>, keys: Map<string, SettingKeys>) {
    const wanted = [...keys].map(([keyId, { saltIndex }]) => ({
      keyId,
      index: Buffer.from(saltIndex).toString("base64"),
    }));
    const inFile = async (form: "snapshot" | "mutations", blob: proto.IExternalBlobReference) => {
      const file = { ...blob, fileLength: blob.fileSizeBytes };
      const bytes = await wholeFile({ kind: "md-app-state", file }, { host, clock });
      return await readOutside({ read: "settings", form, wanted }, bytes);
    };
    if (nodes.snapshot) yield* await inFile("snapshot", proto.ExternalBlobReference.decode(inlineOf(nodes.snapshot)));
    for (const patch of nodes.patches) {
      const { mutations, externalMutations } = proto.SyncdPatch.decode(bounded(inlineOf(patch)));
      for (const { operation, record } of mutations) {
        const keyId = Buffer.from(record?.keyId?.id ?? []).toString("base64");
        const expanded = keys.get(keyId);
        if (!expanded || !isSame(record?.index?.blob, expanded.saltIndex)) continue;
        const blob = Buffer.from(record?.value?.blob ?? []).toString("base64");
        yield { isRemoved: operation === REMOVE, keyId, blob } satisfies FoundSetting;
      }
      if (externalMutations) yield* await inFile("mutations", externalMutations);
    }
  }

  async function take(nodes: ReturnType<typeof partsOf>): Promise<void> {
    const keys = await keysById();
    let salt: Uint8Array | null | undefined;
    for await (const found of changesIn(nodes, keys)) {
      salt = found.isRemoved ? null : saltIn(found, keys.get(found.keyId)!);
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
  if (!(content instanceof Uint8Array)) return true;
  if (content.length > MOST_BYTES_INLINE) return false;
  // Of a malformed one, the library reports what is wrong with it.
  return unlessMalformed(() => !proto.SyncdPatch.decode(bounded(content)).externalMutations, true);
}

/** The bytes of a part that lies in the answer itself. Throws RangeError if a phone would have put them into a file. */
function inlineOf(node: BinaryNode): Uint8Array {
  const bytes = bytesIn(node);
  if (bytes.length > MOST_BYTES_INLINE) throw new RangeError("a part of the settings is too long");
  return bytes;
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
function saltIn(found: FoundSetting, { valueKey, macKey }: SettingKeys): Uint8Array {
  const blob = Buffer.from(found.blob, "base64");
  const encrypted = blob.subarray(0, -MAC_BYTES);
  const about = Buffer.concat([Uint8Array.of(1), Buffer.from(found.keyId, "base64")]);
  const length = new Uint8Array(8).with(7, about.length);
  const mac = createHmac("sha512", macKey).update(about).update(encrypted).update(length).digest();
  if (!isSame(mac.subarray(0, MAC_BYTES), blob.subarray(-MAC_BYTES))) throw new RangeError("a setting was altered");
  const salt = inside(aesDecrypt(encrypted, valueKey), VALUE, NCT_SALT, SALT);
  if (salt.length === 0) throw new RangeError("a setting holds no salt");
  return salt;
}

function isSame(one: Uint8Array | null | undefined, other: Uint8Array): boolean {
  return one?.length === other.length && timingSafeEqual(one, other);
}
