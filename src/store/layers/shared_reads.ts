/**
 * Batches reads: those that arrive while others are in flight are read together, each key once. Every result was read
 * after it was asked for, so it is as fresh as a separate `get`; under load it costs a fraction of one.
 */
import { Batcher, type ItemLimit } from "../../base/batcher.ts";
import { type Key, type KeyOf, type Kv, nameOfKey, type Slot } from "../kv.ts";

type SharedGet = <T>(key: KeyOf<T>) => Promise<Slot<T>>;

interface SharedReadsOptions {
  /** How many batches may be in flight at once; 1 by default. */
  flights?: number;
  limit?: ItemLimit;
}

/** Adds batching. */
export function shareReads(kv: Pick<Kv, "getMany">, options: SharedReadsOptions = {}): SharedGet {
  const batcher = new Batcher<Key, Slot<unknown>>(async (wanted) => {
    const names = wanted.map(nameOfKey);
    const distinct = new Map(names.map((name, i) => [name, wanted[i]!]));
    const slots = await kv.getMany([...distinct.values()]);
    const byName = new Map([...distinct.keys()].map((name, i) => [name, slots[i]!]));
    return names.map((name) => ({ status: "fulfilled", value: byName.get(name)! }));
  }, options);
  return <T>(key: KeyOf<T>) => batcher.add(key) as Promise<Slot<T>>;
}
