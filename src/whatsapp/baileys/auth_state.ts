/**
 * What links a line, in the store: credentials and Signal keys, sealed at rest (promise 6), each `set` one commit.
 *
 * The cache holds encoded values: the library changes in place what it was given, and only a value that is encoded can
 * tell whether a write changes anything. Pre-keys and journal rows are read once, so they stay out. Of sessions the
 * library makes a copy, and our own rows nobody changes, so those that were used last are there as objects too.
 */
import { Buffer } from "node:buffer";
import {
  type AuthenticationCreds,
  BufferJSON,
  initAuthCreds,
  proto,
  type SignalDataSet,
  type SignalKeyStore,
} from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../base/at_most.ts";
import PQueue from "p-queue";
import { type LineRows, networkKeys } from "./rows.ts";
import { deleteRange } from "../../store/delete_range.ts";
import { COMMIT_LIMITS } from "../../store/limits.ts";
import { Change, type CommitOptions, type Kv, StoreError } from "../../store/kv.ts";

/** Bytes of encoded keys that one line keeps in memory: some hundred sessions. */
const CACHE_BYTES = 256 * 1024;
/** A first upload of 812 pre-keys fits; sealing adds some bytes to each. */
const MUTATIONS_A_COMMIT = COMMIT_LIMITS.mutations - 50;
const BYTES_A_COMMIT = COMMIT_LIMITS.bytes - 100 * 1024;
const UNCACHED = new Set(["pre-key", "journal", "undecryptable"]);
/** In the cache: there is no such row. The library asks for the tokens of every recipient, and few have one. */
const NONE = new Uint8Array();
/** What an entry of the cache takes beside its bytes. */
const ENTRY_BYTES = 100;
/** What one line keeps as objects, of some 3 KB each: sessions of the owner's devices, and of the chats written to now. */
const MOST_DECODED = 16;

/** Rows of the adapter's own beside the library's types: they ride in its transactions. */
type OwnKeyType = "journal" | "undecryptable" | "nct-salt";

/** What one write takes: rows of the library, and of the adapter. */
export type KeyData = SignalDataSet & { [Type in OwnKeyType]?: { [id: string]: unknown } };

export interface AuthState {
  /** The object that the library changes in place. */
  readonly creds: AuthenticationCreds;
  readonly keys: SignalKeyStore;
  /** Resolves when the credentials as they are now are on disk. Throws StoreError. */
  saveCreds(): Promise<void>;
  /** Every row of one of the adapter's own types. */
  list<T>(type: OwnKeyType): Promise<Map<string, T>>;
  get<T>(type: OwnKeyType, id: string): Promise<T | null>;
  /** How many reads the store has refused: the library takes a session that cannot be read for one that is not there. */
  refusedReads(): number;
  /** Runs `work`; until `patience` resolves, sessions that are written meanwhile may wait for another commit's flush. */
  patiently(patience: Promise<unknown>, work: () => Promise<void>): Promise<void>;
  /** Waits for writes under way; later ones are refused, so that a closed connection can't touch its successor's keys. */
  close(): Promise<void>;
}

/** Whether these credentials are of a completed link (a link by code sets `me` long before). */
export function isLinked(creds: AuthenticationCreds): boolean {
  return creds.me !== undefined && creds.account !== undefined;
}

/** The stored credentials, or null. Throws StoreError, SealError. */
export async function readCreds(options: LineRows): Promise<AuthenticationCreds | null> {
  const { kv, seal, lineId } = options;
  const { value } = await kv.get(networkKeys.waCreds(lineId));
  return value ? decode<AuthenticationCreds>(seal.open(value)) : null;
}

/** Opens a line's keys; a line without a completed link begins with fresh credentials. Throws StoreError, SealError. */
export async function openAuthState(options: LineRows): Promise<AuthState> {
  const { kv, seal, lineId } = options;
  const stored = await readCreds(options);
  const creds = stored && isLinked(stored) ? stored : initAuthCreds();
  const cache = new LRUCache<string, Uint8Array>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ length }) => ENTRY_BYTES + length,
  });
  /** Values as they were last decoded or written, each with its bytes. */
  const decoded = new LRUCache<string, { bytes: Uint8Array; value: object }>(atMost(MOST_DECODED));
  /** Writes that have ended: what was read before one and arrives after it may be old, and is not cached. */
  let writes = 0;
  let refusedReads = 0;
  const underway = new Set<Promise<unknown>>();
  let closed = false;
  let patience: Promise<unknown> | undefined;
  let savedCreds = stored === creds ? encode(creds) : null;
  const saves = new PQueue({ concurrency: 1 });

  /** Every write goes through here, so that `close` can wait for it. */
  async function commit(change: Change, options?: CommitOptions): Promise<void> {
    if (closed) throw new StoreError("unavailable", "the connection is closed");
    const run = kv.commit(change, options);
    underway.add(run);
    try {
      await run;
    } finally {
      underway.delete(run);
    }
  }

  async function writeCreds(): Promise<void> {
    const bytes = encode(creds);
    if (savedCreds && Buffer.compare(bytes, savedCreds) === 0) return;
    await commit(new Change().set(networkKeys.waCreds(lineId), seal.seal(bytes)));
    savedCreds = bytes;
  }

  async function read(type: string, ids: string[]): Promise<Map<string, Uint8Array>> {
    const found = new Map<string, Uint8Array>();
    const missing: string[] = [];
    for (const id of ids) {
      const bytes = cache.get(`${type}/${id}`);
      if (bytes === undefined) missing.push(id);
      else if (bytes !== NONE) found.set(id, bytes);
    }
    if (missing.length === 0) return found;
    const before = writes;
    const slots = await kv.getMany(missing.map((id) => networkKeys.waKey(lineId, type, id))).catch((error) => {
      refusedReads++;
      throw error;
    });
    slots.forEach((slot, i) => {
      const bytes = slot.value ? seal.open(slot.value) : NONE;
      if (bytes !== NONE) found.set(missing[i]!, bytes);
      if (!UNCACHED.has(type) && writes === before) cache.set(`${type}/${missing[i]}`, bytes);
    });
    return found;
  }

  /** Not to be changed by who gets it. */
  function valueOf(name: string, bytes: Uint8Array): object {
    const known = decoded.get(name);
    if (known?.bytes === bytes) return known.value;
    const value = decode<object>(bytes);
    decoded.set(name, { bytes, value });
    return value;
  }

  async function write(data: Record<string, Record<string, unknown> | undefined>): Promise<void> {
    const isPatient = patience !== undefined && Object.keys(data).every((type) => type === "session");
    const options = isPatient ? { patience } : {};
    let change = new Change();
    let size = 0;
    const known: [name: string, bytes: Uint8Array | null][] = [];
    const flush = async () => {
      if (change.mutations.length === 0) return;
      try {
        await commit(change, options);
        for (const [name, bytes] of known) cache.set(name, bytes ?? NONE);
      } catch (error) {
        // Whether it was written is unknown: the store has to be asked again.
        for (const [name] of known) cache.delete(name);
        throw error;
      } finally {
        writes++;
      }
      change = new Change();
      size = known.length = 0;
    };
    for (const [type, values] of Object.entries(data)) {
      for (const [id, value] of Object.entries(values ?? {})) {
        const name = `${type}/${id}`;
        const key = networkKeys.waKey(lineId, type, id);
        const bytes = value === null || value === undefined ? null : encode(value);
        if (bytes && isSame(bytes, cache.get(name))) continue;
        if (!UNCACHED.has(type)) known.push([name, bytes]);
        if (bytes && type === "session") decoded.set(name, { bytes, value: value as object });
        if (bytes) change.set(key, seal.seal(bytes));
        else change.delete(key);
        size += bytes?.length ?? 0;
        if (change.mutations.length >= MUTATIONS_A_COMMIT || size >= BYTES_A_COMMIT) await flush();
      }
    }
    await flush();
  }

  return {
    creds,
    keys: {
      async get(type, ids) {
        const found = await read(type, ids);
        const given = (id: string, bytes: Uint8Array) =>
          type === "session" ? valueOf(`${type}/${id}`, bytes) : revive(type, bytes);
        return Object.fromEntries([...found].map(([id, bytes]) => [id, given(id, bytes)]));
      },
      set: (data: SignalDataSet) => write(data),
    },
    saveCreds: () => saves.add(writeCreds),
    async list<T>(type: OwnKeyType) {
      const rows = new Map<string, T>();
      for await (const row of kv.list<Uint8Array>({ prefix: networkKeys.waKeysOf(lineId, type) })) {
        rows.set(String(row.key.at(-1)), decode<T>(seal.open(row.value)));
      }
      return rows;
    },
    async get<T>(type: OwnKeyType, id: string) {
      const bytes = (await read(type, [id])).get(id);
      if (!bytes) return null;
      return UNCACHED.has(type) ? decode<T>(bytes) : valueOf(`${type}/${id}`, bytes) as T;
    },
    refusedReads: () => refusedReads,
    async patiently(given, work) {
      patience = given;
      try {
        await work();
      } finally {
        if (patience === given) patience = undefined;
      }
    },
    async close() {
      await saves.onIdle();
      closed = true;
      await Promise.allSettled(underway);
    },
  };
}

/** Drops all that links the line, its journal and its sent messages included. Throws StoreError. */
export async function forgetLine(kv: Kv, lineId: string): Promise<void> {
  await deleteRange(kv, { prefix: networkKeys.waLine(lineId) });
}

/** A session's keys are base64: the conversion of buffers would look at each of its many values in vain. */
const SESSION_BEGINS = '{"_sessions":';

function encode(value: unknown): Uint8Array {
  const isSession = typeof value === "object" && value !== null && "_sessions" in value;
  return Buffer.from(isSession ? JSON.stringify(value) : JSON.stringify(value, BufferJSON.replacer));
}

function decode<T>(bytes: Uint8Array): T {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  return text.startsWith(SESSION_BEGINS) ? JSON.parse(text) : JSON.parse(text, BufferJSON.reviver);
}

// deno-lint-ignore no-explicit-any -- the library types its values by the key's type, which is not known here
function revive(type: string, bytes: Uint8Array): any {
  const value = decode<object>(bytes);
  return type === "app-state-sync-key" ? proto.Message.AppStateSyncKeyData.fromObject(value) : value;
}

function isSame(a: Uint8Array, b: Uint8Array | undefined): boolean {
  return b !== undefined && Buffer.compare(a, b) === 0;
}
