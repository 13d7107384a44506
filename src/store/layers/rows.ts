/** The rows that the store keeps for itself; nothing above reads them. */
import { type Key, key, prefix } from "../kv.ts";

/** The row of a blob: which row's value it is, and in how many chunks it lies. */
export interface BlobRow {
  owner: Key;
  parts: number;
}

/** What a process rang. */
export interface RingRow {
  from: string;
  topics: readonly string[];
}

export const storeKeys = {
  /** Never holds anything: deleting it waits until the file can be written. */
  probe: () => key<never>("store", "probe"),
  /** The highest number that an instance has drawn. */
  instances: () => key<number>("store", "chunk_writers"),
  /** Chunks are being written ahead of a commit; the value is when that began. */
  staging: (stageId: string) => key<number>("store", "staging", stageId),
  stagings: () => prefix<number>("store", "staging"),
  /** Which row a large value belongs to, and in how many chunks it lies. */
  blob: (stageId: string, index: number) => key<BlobRow>("store", "blob", stageId, index),
  blobs: () => prefix<BlobRow>("store", "blob"),
  chunk: (stageId: string, index: number, part: number) => key<Uint8Array>("store", "chunk", stageId, index, part),
  /** Rings of the last minutes, in the order of their sequence; a bell that many processes share keeps them. */
  ring: (order: string) => key<RingRow>("store", "ring", order),
  rings: () => prefix<RingRow>("store", "ring"),
  ringSequence: () => key<number>("store", "ring_sequence"),
};

/** Whether the row is one of these: it is about this store, and nothing of another. */
export function isOwnRow(key: Key): boolean {
  return key[0] === "store";
}
