/**
 * The rows that link a line: credentials and Signal keys, sealed at rest (promise 6). Each `set` is one commit.
 *
 * The cache holds encoded values, because the library mutates the objects that it was given, and because only an
 * encoded value shows whether a write changes anything. Pre-keys and journal rows are read once, so they are not
 * cached. The library copies sessions and nobody mutates the adapter's own rows, so the most recently used of these are
 * also cached as objects.
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

/** Bytes of encoded keys that one line caches: some hundred sessions. */
const CACHE_BYTES = 256 * 1024;
/** A first upload of 812 pre-keys fits. Sealing adds a few bytes to each row. */
const MUTATIONS_A_COMMIT = COMMIT_LIMITS.mutations - 50;
const BYTES_A_COMMIT = COMMIT_LIMITS.bytes - 100 * 1024;
const UNCACHED = new Set(["pre-key", "journal", "undecryptable"]);
/** Cached for a row that does not exist. The library looks up the token of every recipient, and few have one. */
const NONE = new Uint8Array();
/** The size of a cache entry besides its bytes. */
const ENTRY_BYTES = 100;
/**
 * Maximum number of objects that one line caches, of some 3 KB each: sessions of the owner's devices and of the chats
 * written to now.
 */
const MOST_DECODED = 16;

/** Types of the adapter's own rows, which are written within the library's transactions. */
type OwnKeyType = "journal" | "undecryptable" | "nct-salt" | "new-lid";

interface Lingering {
  /** Until this resolves, the sessions start no flush. */
  until: Promise<unknown>;
  /** Called with each write, when it waits for a flush. */
  waits(): void;
}

/** The data of one write: rows of the library and of the adapter. */
export type KeyData = SignalDataSet & { [Type in OwnKeyType]?: { [id: string]: unknown } };

/** Whether these credentials belong to a completed link (a link by code sets `me` long before). */
export function isLinked(creds: AuthenticationCreds): boolean {
  return creds.me !== undefined && creds.account !== undefined;
}

/** Resolves to the stored credentials of a completed link, or null. Throws StoreError, SealError. */
export async function readLink({ kv, seal, lineId }: LineRows): Promise<AuthenticationCreds | null> {
  const { value } = await kv.get(networkKeys.waCreds(lineId));
  const creds = value && decode<AuthenticationCreds>(seal.open(value));
  return creds && isLinked(creds) ? creds : null;
}

/** Opens a line's keys. A line without a completed link starts with fresh credentials. Throws StoreError, SealError. */
export async function openAuthState(line: LineRows): Promise<AuthState> {
  return new AuthState(line, await readLink(line));
}

export class AuthState {
  /** The object that the library mutates. */
  readonly creds: AuthenticationCreds;
  /** The library's key store; accepts the adapter's rows too. */
  readonly keys: Omit<SignalKeyStore, "set"> & { set(data: KeyData): Promise<void> };
  readonly #line: LineRows;
  readonly #cache = new LRUCache<string, Uint8Array>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ length }) => ENTRY_BYTES + length,
  });
  /** Values as last decoded or written, each with its bytes. */
  readonly #decoded = new LRUCache<string, { bytes: Uint8Array; value: unknown }>(atMost(MOST_DECODED));
  readonly #saves = new PQueue({ concurrency: 1 });
  readonly #underway = new Set<Promise<unknown>>();
  #savedCreds: Uint8Array | null;
  /**
   * Number of finished writes. A value read before one of them and received after it may be stale, and is not cached.
   */
  #writes = 0;
  #refusedReads = 0;
  #lingering: Lingering | undefined;
  #closed = false;

  /** `stored`: the credentials of a completed link. */
  constructor(line: LineRows, stored: AuthenticationCreds | null) {
    this.#line = line;
    this.creds = stored ?? initAuthCreds();
    this.#savedCreds = stored && encode(stored);
    this.keys = {
      get: async (type, ids) => {
        const found = await this.#read(type, ids);
        const given = (id: string, bytes: Uint8Array) =>
          type === "session" ? this.#valueOf(`${type}/${id}`, bytes) : revive(type, bytes);
        return Object.fromEntries([...found].map(([id, bytes]) => [id, given(id, bytes)]));
      },
      set: (data) => this.#write(data),
    };
  }

  /** Number of reads that the store has refused: the library takes a session that cannot be read for a missing one. */
  get refusedReads(): number {
    return this.#refusedReads;
  }

  /** Resolves when the current credentials are on disk. Throws StoreError. */
  saveCreds(): Promise<void> {
    return this.#saves.add(() => this.#writeCreds());
  }

  /** Returns every row of one of the adapter's own types. */
  async list<T>(type: OwnKeyType): Promise<Map<string, T>> {
    const { kv, seal, lineId } = this.#line;
    const rows = new Map<string, T>();
    for await (const row of kv.list<Uint8Array>({ prefix: networkKeys.waKeysOf(lineId, type) })) {
      rows.set(String(row.key.at(-1)), decode<T>(seal.open(row.value)));
    }
    return rows;
  }

  /** Returns the ids of the library's keys of a type. */
  async idsOf(type: keyof SignalDataSet): Promise<string[]> {
    const { kv, lineId } = this.#line;
    const rows = await Array.fromAsync(kv.list({ prefix: networkKeys.waKeysOf(lineId, type) }));
    return rows.map(({ key }) => String(key.at(-1)));
  }

  async get<T>(type: OwnKeyType, id: string): Promise<T | null> {
    const bytes = (await this.#read(type, [id])).get(id);
    if (!bytes) return null;
    return UNCACHED.has(type) ? decode<T>(bytes) : this.#valueOf(`${type}/${id}`, bytes) as T;
  }

  /** Runs `work`. Sessions written meanwhile may wait for another commit's flush. */
  async lingering(lingering: Lingering, work: () => Promise<unknown>): Promise<void> {
    this.#lingering = lingering;
    try {
      await work();
    } finally {
      if (this.#lingering === lingering) this.#lingering = undefined;
    }
  }

  /**
   * Waits for pending writes and refuses later ones, so that a closed connection can't touch its successor's rows or
   * leave some behind after a log-out.
   */
  async close(): Promise<void> {
    await this.#saves.onIdle();
    this.#closed = true;
    await Promise.allSettled(this.#underway);
  }

  /** Whether writes are refused. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Every write of the connection goes through here, so that `close` can wait for it. Throws StoreError. */
  async commit(change: Change, options?: CommitOptions): Promise<void> {
    if (this.#closed) throw new StoreError("unavailable", "the connection is closed");
    const run = this.#line.kv.commit(change, options);
    this.#underway.add(run);
    try {
      await run;
    } finally {
      this.#underway.delete(run);
    }
  }

  async #writeCreds(): Promise<void> {
    const { seal, lineId } = this.#line;
    const bytes = encode(this.creds);
    if (isSame(bytes, this.#savedCreds)) return;
    await this.commit(new Change().set(networkKeys.waCreds(lineId), seal.seal(bytes)));
    this.#savedCreds = bytes;
  }

  async #read(type: string, ids: string[]): Promise<Map<string, Uint8Array>> {
    const { kv, seal, lineId } = this.#line;
    const found = new Map<string, Uint8Array>();
    const missing: string[] = [];
    for (const id of ids) {
      const bytes = this.#cache.get(`${type}/${id}`);
      if (bytes === undefined) missing.push(id);
      else if (bytes !== NONE) found.set(id, bytes);
    }
    if (missing.length === 0) return found;
    const before = this.#writes;
    const slots = await kv.getMany(missing.map((id) => networkKeys.waKey(lineId, type, id))).catch((error) => {
      // Another error means that an id is too long for a key. Strangers choose ids, so the store is not at fault.
      if (error instanceof StoreError) this.#refusedReads++;
      throw error;
    });
    slots.forEach((slot, i) => {
      const bytes = slot.value ? seal.open(slot.value) : NONE;
      if (bytes !== NONE) found.set(missing[i]!, bytes);
      if (!UNCACHED.has(type) && this.#writes === before) this.#cache.set(`${type}/${missing[i]}`, bytes);
    });
    return found;
  }

  /** The caller must not mutate the value. */
  #valueOf(name: string, bytes: Uint8Array): unknown {
    const known = this.#decoded.get(name);
    if (known?.bytes === bytes) return known.value;
    const value = decode<unknown>(bytes);
    this.#decoded.set(name, { bytes, value });
    return value;
  }

  async #write(data: Record<string, Record<string, unknown> | undefined>): Promise<void> {
    const { seal, lineId } = this.#line;
    const lingering = Object.keys(data).every((type) => type === "session") ? this.#lingering : undefined;
    const options = lingering ? { lingerUntil: lingering.until } : {};
    let change = new Change();
    let size = 0;
    const known: [name: string, bytes: Uint8Array | null][] = [];
    const flush = async () => {
      if (change.mutations.length === 0) return;
      try {
        const committed = this.commit(change, options);
        lingering?.waits();
        await committed;
        for (const [name, bytes] of known) this.#cache.set(name, bytes ?? NONE);
      } catch (error) {
        // It is unknown whether this was written, so the store has to be read again.
        for (const [name] of known) this.#cache.delete(name);
        throw error;
      } finally {
        this.#writes++;
      }
      change = new Change();
      size = known.length = 0;
    };
    for (const [type, values] of Object.entries(data)) {
      for (const [id, value] of Object.entries(values ?? {})) {
        const name = `${type}/${id}`;
        const key = networkKeys.waKey(lineId, type, id);
        const bytes = value === null || value === undefined ? null : encode(value);
        if (bytes && isSame(bytes, this.#cache.get(name))) continue;
        if (!UNCACHED.has(type)) known.push([name, bytes]);
        if (bytes && type === "session") this.#decoded.set(name, { bytes, value });
        if (bytes) change.set(key, seal.seal(bytes));
        else change.delete(key);
        size += bytes?.length ?? 0;
        if (change.mutations.length >= MUTATIONS_A_COMMIT || size >= BYTES_A_COMMIT) await flush();
      }
    }
    await flush();
  }
}

/** Deletes everything that links the line, including its journal and sent messages. Throws StoreError. */
export async function forgetLine(kv: Kv, lineId: string): Promise<void> {
  await deleteRange(kv, { prefix: networkKeys.waLine(lineId) });
}

/**
 * The keys of a session are base64 already: converting buffers would only visit each of its many values for nothing.
 */
const SESSION_BEGINS = '{"_sessions":';

export function encode(value: unknown): Uint8Array {
  const isSession = typeof value === "object" && value !== null && "_sessions" in value;
  return Buffer.from(isSession ? JSON.stringify(value) : JSON.stringify(value, BufferJSON.replacer));
}

export function decode<T>(bytes: Uint8Array): T {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  return text.startsWith(SESSION_BEGINS) ? JSON.parse(text) : JSON.parse(text, BufferJSON.reviver);
}

// deno-lint-ignore no-explicit-any -- the library types its values by the key's type, which is not known here
function revive(type: string, bytes: Uint8Array): any {
  const value = decode<object>(bytes);
  return type === "app-state-sync-key" ? proto.Message.AppStateSyncKeyData.fromObject(value) : value;
}

function isSame(a: Uint8Array, b: Uint8Array | null | undefined): boolean {
  return b != null && Buffer.compare(a, b) === 0;
}
