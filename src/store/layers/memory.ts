/**
 * Rows of some families as they were last read or written, in memory: for a process that is alone on its data, and reads
 * what it has just written. A read that finds its row here asks the engine nothing.
 *
 * Another process that may write beside it (a command) is noticed in two ways: a commit whose check fails forgets what it
 * has checked, and a list forgets rows that it finds changed. Whoever writes on what it has read checks it, as ever. That
 * a row is not there is remembered only where no other process makes such rows.
 */
import { LRUCache } from "lru-cache";
import { type Change, type Key, type KeyOf, type KeyPart, nameOfKey, type Slot } from "../kv.ts";
import type { ChunkedKv } from "./chunk.ts";
import { sizeBound } from "./size.ts";

/** What all rows in memory may take, bytes. */
const BYTES = 8 * 1024 ** 2;
/** What a row takes beside its value: key, name, places in maps. */
const ROW_BYTES = 500;
/** Larger ones are seldom and would drive out many. */
const LARGEST_ROW_BYTES = 64 * 1024;

/** The first parts of keys. */
type Families = ReadonlySet<KeyPart>;

/** `absences`: of which families it is remembered, too, that a row is not there. Values given to a commit must not change after it. */
export function withMemory(
  kv: ChunkedKv,
  { families, absences }: Record<"families" | "absences", Families>,
): ChunkedKv {
  const rows = new LRUCache<string, Slot<unknown>>({
    maxSize: BYTES,
    maxEntrySize: LARGEST_ROW_BYTES,
    sizeCalculation: ({ value }) => ROW_BYTES + sizeBound(value),
  });
  /** Reads under way whose answers are still to be remembered: a commit of the same row calls that off. */
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
          // Which of the two is newer is unknown.
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
        // Reads that began meanwhile may have found what was before.
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

/** What the change makes of each remembered row, by its name; undefined where that is not known. */
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
