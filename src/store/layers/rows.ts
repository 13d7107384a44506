/** The store's own rows; only `logMissing` is read above it. */
import { type Key, key, prefix } from "../kv.ts";

/** A blob's row: the key of the value that it holds, and its number of chunks. */
export interface BlobRow {
  owner: Key;
  parts: number;
}

/** Topics that a process rang. */
export interface RingRow {
  from: string;
  topics: readonly string[];
}

export const storeKeys = {
  /** Never has a value: deleting it succeeds once the file can be written. */
  probe: () => key<never>("store", "probe"),
  /** When the store was last opened without the log that it should have had, Unix ms. */
  logMissing: () => key<number>("store", "log_missing"),
  /** The highest instance number drawn so far. */
  instances: () => key<number>("store", "chunk_writers"),
  /** Marks chunks that are being written ahead of a commit; the value is the time of the last write, Unix ms. */
  staging: (stageId: string) => key<number>("store", "staging", stageId),
  stagings: () => prefix<number>("store", "staging"),
  /** The owner of a large value, and its number of chunks. */
  blob: (stageId: string, index: number) => key<BlobRow>("store", "blob", stageId, index),
  blobs: () => prefix<BlobRow>("store", "blob"),
  chunk: (stageId: string, index: number, part: number) => key<Uint8Array>("store", "chunk", stageId, index, part),
  /** Rings of the last few minutes in order, kept by a bell shared by many processes. */
  ring: (order: string) => key<RingRow>("store", "ring", order),
  rings: () => prefix<RingRow>("store", "ring"),
  ringSequence: () => key<number>("store", "ring_sequence"),
};

/** Whether the row is one of these: they describe this store and mean nothing in another. */
export function isOwnRow(key: Key): boolean {
  return key[0] === "store";
}
