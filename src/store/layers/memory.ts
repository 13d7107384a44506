/**
 * A cache of rows of certain families as they were last read or written, for a process that is alone on its data and
 * reads what it has just written.
 *
 * Writes by another process (a command) are noticed in two ways: a commit whose check fails evicts the rows that it
 * checked, and a list evicts rows that it finds changed. Read-modify-write commits check what they read, as always. The
 * absence of a row is cached only for families in which no other process creates rows.
 */
import { LRUCache } from "lru-cache";
import { type Change, type Key, type KeyOf, type KeyPart, nameOfKey, type Slot } from "../kv.ts";
import type { ChunkedKv } from "./chunk.ts";
import { sizeBound } from "../limits.ts";

/** Capacity in bytes. */
const BYTES = 8 * 1024 ** 2;
/** Overhead of a row beside its value: key, name, map entries. */
const ROW_BYTES = 500;
/** Larger rows are rare and would evict many others. */
const LARGEST_ROW_BYTES = 64 * 1024;

/** First key parts. */
type Families = ReadonlySet<KeyPart>;

/**
 * Adds the cache. `absences`: families whose absent rows are cached too. Callers must not modify a value after they
 * have given it to a commit.
 */
export function withMemory(
  kv: ChunkedKv,
  { families, absences }: Record<"families" | "absences", Families>,
): ChunkedKv {
  const rows = new LRUCache<string, Slot<unknown>>({
    maxSize: BYTES,
    maxEntrySize: LARGEST_ROW_BYTES,
    sizeCalculation: ({ value }) => ROW_BYTES + sizeBound(value),
  });
  /** Reads in progress whose results may still be cached: a commit of the same row cancels that. */
  const reading = new Map<string, symbol>();

  const isRemembered = ([family]: Key) => families.has(family!);

  function remember(name: string, slot: Slot<unknown>): void {
    if (slot.version !== null || absences.has(slot.key[0]!)) rows.set(name, slot);
  }

  function forget(names: Iterable<string>): void {
    for (const name of names) {
      rows.delete(name);
      reading.delete(name);
    }
  }

  async function read<T>(keys: readonly KeyOf<T>[]): Promise<Slot<T>[]> {
    const ticket = Symbol();
    const names = keys.map((key) => isRemembered(key) ? nameOfKey(key) : null);
    const mine = (name: string | null): name is string => name !== null && reading.get(name) === ticket;
    for (const name of names) if (name !== null) reading.set(name, ticket);
    try {
      const slots = keys.length === 1 ? [await kv.get(keys[0]!)] : await kv.getMany(keys);
      slots.forEach((slot, i) => mine(names[i]!) && remember(names[i]!, slot));
      return slots;
    } finally {
      for (const name of names) if (mine(name)) reading.delete(name);
    }
  }

  function known<T>(key: KeyOf<T>): Slot<T> | undefined {
    return isRemembered(key) ? rows.get(nameOfKey(key)) as Slot<T> | undefined : undefined;
  }

  return {
    ...kv,
    get: async (key) => known(key) ?? (await read([key]))[0]!,

    async getMany<T>(keys: readonly KeyOf<T>[]) {
      const found = keys.map((key) => known(key));
      const missing = keys.filter((_, i) => found[i] === undefined);
      const slots = missing.length === 0 ? [] : await read(missing);
      let next = 0;
      return found.map((slot) => slot ?? slots[next++]!);
    },

    async *list(range, options) {
      for await (const row of kv.list(range, options)) {
        if (isRemembered(row.key)) {
          const name = nameOfKey(row.key);
          // Either of the two may be the newer one.
          if (rows.has(name) && rows.peek(name)!.version !== row.version) forget([name]);
        }
        yield row;
      }
    },

    async commit(change, options) {
      const written = writtenBy(change, isRemembered);
      forget(written.keys());
      let version: string | null = null;
      try {
        version = await kv.commit(change, options);
      } finally {
        // Reads that began during the commit may have seen the previous row.
        forget(written.keys());
        if (version === null) {
          forget(change.checks.filter(({ key }) => isRemembered(key)).map(({ key }) => nameOfKey(key)));
        }
      }
      if (version === null) return null;
      for (const [name, { key, value }] of written) {
        if (value !== undefined) remember(name, { key, value, version: value === null ? null : version });
      }
      return version;
    },
  };
}

/**
 * Returns the new value of each cacheable row that the change writes, by name; undefined if only the engine knows it.
 */
function writtenBy(
  { mutations }: Change,
  isRemembered: (key: Key) => boolean,
): Map<string, { key: Key; value: unknown }> {
  const written = new Map<string, { key: Key; value: unknown }>();
  for (const mutation of mutations) {
    const { kind, key } = mutation;
    if (!isRemembered(key)) continue;
    written.set(nameOfKey(key), { key, value: kind === "set" ? mutation.value : kind === "delete" ? null : undefined });
  }
  return written;
}
