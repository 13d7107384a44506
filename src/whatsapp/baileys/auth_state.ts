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

/** Whether these credentials are of a completed link (a link by code sets `me` long before). */
export function isLinked(creds: AuthenticationCreds): boolean {
  return creds.me !== undefined && creds.account !== undefined;
}

/** The stored credentials, or null. Throws StoreError, SealError. */
export async function readCreds({ kv, seal, lineId }: LineRows): Promise<AuthenticationCreds | null> {
  const { value } = await kv.get(networkKeys.waCreds(lineId));
  return value ? decode<AuthenticationCreds>(seal.open(value)) : null;
}

/** Opens a line's keys; a line without a completed link begins with fresh credentials. Throws StoreError, SealError. */
export async function openAuthState(line: LineRows): Promise<AuthState> {
  const stored = await readCreds(line);
  return new AuthState(line, stored && isLinked(stored) ? stored : null);
}

export class AuthState {
  /** The object that the library changes in place. */
  readonly creds: AuthenticationCreds;
  /** The library's; takes rows of the adapter too. */
  readonly keys: Omit<SignalKeyStore, "set"> & { set(data: KeyData): Promise<void> };
  readonly #line: LineRows;
  readonly #cache = new LRUCache<string, Uint8Array>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ length }) => ENTRY_BYTES + length,
  });
  /** Values as they were last decoded or written, each with its bytes. */
  readonly #decoded = new LRUCache<string, { bytes: Uint8Array; value: unknown }>(atMost(MOST_DECODED));
  readonly #saves = new PQueue({ concurrency: 1 });
  readonly #underway = new Set<Promise<unknown>>();
  #savedCreds: Uint8Array | null;
  /** Writes that have ended: what was read before one and arrives after it may be old, and is not cached. */
  #writes = 0;
  #refusedReads = 0;
  #lingerUntil: Promise<unknown> | undefined;
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

  /** How many reads the store has refused: the library takes a session that cannot be read for one that is not there. */
  get refusedReads(): number {
    return this.#refusedReads;
  }

  /** Resolves when the credentials as they are now are on disk. Throws StoreError. */
  saveCreds(): Promise<void> {
    return this.#saves.add(() => this.#writeCreds());
  }

  /** Every row of one of the adapter's own types. */
  async list<T>(type: OwnKeyType): Promise<Map<string, T>> {
    const { kv, seal, lineId } = this.#line;
    const rows = new Map<string, T>();
    for await (const row of kv.list<Uint8Array>({ prefix: networkKeys.waKeysOf(lineId, type) })) {
      rows.set(String(row.key.at(-1)), decode<T>(seal.open(row.value)));
    }
    return rows;
  }

  async get<T>(type: OwnKeyType, id: string): Promise<T | null> {
    const bytes = (await this.#read(type, [id])).get(id);
    if (!bytes) return null;
    return UNCACHED.has(type) ? decode<T>(bytes) : this.#valueOf(`${type}/${id}`, bytes) as T;
  }

  /** Runs `work`; until `lingerUntil` resolves, sessions that are written meanwhile may wait for another commit's flush. */
  async lingering(lingerUntil: Promise<unknown>, work: () => Promise<void>): Promise<void> {
    this.#lingerUntil = lingerUntil;
    try {
      await work();
    } finally {
      if (this.#lingerUntil === lingerUntil) this.#lingerUntil = undefined;
    }
  }

  /**
   * Waits for writes under way; later ones are refused, so that a closed connection can't touch its successor's rows,
   * or leave some behind a log-out.
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
      this.#refusedReads++;
      throw error;
    });
    slots.forEach((slot, i) => {
      const bytes = slot.value ? seal.open(slot.value) : NONE;
      if (bytes !== NONE) found.set(missing[i]!, bytes);
      if (!UNCACHED.has(type) && this.#writes === before) this.#cache.set(`${type}/${missing[i]}`, bytes);
    });
    return found;
  }

  /** Not to be changed by who gets it. */
  #valueOf(name: string, bytes: Uint8Array): unknown {
    const known = this.#decoded.get(name);
    if (known?.bytes === bytes) return known.value;
    const value = decode<unknown>(bytes);
    this.#decoded.set(name, { bytes, value });
    return value;
  }

  async #write(data: Record<string, Record<string, unknown> | undefined>): Promise<void> {
    const { seal, lineId } = this.#line;
    const lingerUntil = this.#lingerUntil;
    const lingers = lingerUntil !== undefined && Object.keys(data).every((type) => type === "session");
    const options = lingers ? { lingerUntil } : {};
    let change = new Change();
    let size = 0;
    const known: [name: string, bytes: Uint8Array | null][] = [];
    const flush = async () => {
      if (change.mutations.length === 0) return;
      try {
        await this.commit(change, options);
        for (const [name, bytes] of known) this.#cache.set(name, bytes ?? NONE);
      } catch (error) {
        // Whether it was written is unknown: the store has to be asked again.
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

/** Drops all that links the line, its journal and its sent messages included. Throws StoreError. */
export async function forgetLine(kv: Kv, lineId: string): Promise<void> {
  await deleteRange(kv, { prefix: networkKeys.waLine(lineId) });
}

/** A session's keys are base64: the conversion of buffers would look at each of its many values in vain. */
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
