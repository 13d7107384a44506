/**
 * Blobs: values too large for one row, stored as chunks. A blob's chunks never change, and exactly one row refers to
 * it, by a head. Once no head refers to a blob it is garbage for good, and a sweep removes it.
 */
import v8 from "node:v8";
import { Buffer } from "node:buffer";
import type { Clock } from "../../runtime.ts";
import { deleteKeys } from "../delete_range.ts";
import { Change, type Key, type Kv, type Mutation, type Row } from "../kv.ts";
import { instanceNumber } from "./order.ts";
import { CHUNK_BYTES, decodeRow, type Head, headRow } from "./row_format.ts";
import { type BlobRow, storeKeys } from "./rows.ts";

/** A commit staged longer ago than this is abandoned: its process has died. */
const STAGING_ABANDONED_MS = 60 * 60 * 1000;
/** Blobs examined by one run of the sweep. */
const BLOBS_A_SWEEP = 1000;

/** The writes that create a blob: the head, in the value's own row, and the blob's rows. */
interface NewBlob {
  head: Mutation;
  rows: Mutation[];
}

/** Splits a value into a blob. `owner`: the value's key. */
export function makeBlob({ stageId, index }: Omit<Head, "parts">, owner: Key, bytes: Uint8Array): NewBlob {
  const chunks: Uint8Array[] = [];
  // Copies, because the engine would store the whole buffer behind a view.
  for (let i = 0; i < bytes.length; i += CHUNK_BYTES) chunks.push(bytes.slice(i, i + CHUNK_BYTES));
  const head: Head = { stageId, index, parts: chunks.length };
  const blobRow: BlobRow = { owner, parts: chunks.length };
  return {
    head: { kind: "set", key: owner, value: headRow(head) },
    rows: [
      { kind: "set", key: storeKeys.blob(stageId, index), value: blobRow },
      ...chunkKeys(head).map((key, part): Mutation => ({ kind: "set", key, value: chunks[part] })),
    ],
  };
}

/** Reads the blob's value; null if one of its chunks is gone. */
export async function readBlob(kv: Kv, head: Head): Promise<{ value: unknown } | null> {
  const chunks: Uint8Array[] = [];
  for (const { value } of await kv.getMany(chunkKeys(head))) {
    if (value === null) return null;
    chunks.push(value);
  }
  return { value: v8.deserialize(Buffer.concat(chunks)) };
}

/** Returns a generator of stage ids that are unique across processes and restarts. */
export function stageIds(kv: Kv, clock: Clock): () => Promise<string> {
  const instance = instanceNumber(kv, clock);
  let count = 0;
  return async () => `${await instance()}-${++count}`;
}

/**
 * Returns a sweep that removes a slice of the garbage at each call, continuing where it stopped; it resolves to the
 * count.
 */
export function makeSweepBlobs(kv: Kv, clock: Clock): (signal: AbortSignal) => Promise<number> {
  /** Where the next call continues. */
  let cursor: Key | undefined;
  return async (signal) => {
    for await (const row of kv.list({ prefix: storeKeys.stagings() })) {
      const age = clock.now() - row.value;
      if (age > STAGING_ABANDONED_MS) await kv.commit(new Change().check(row).delete(row.key));
    }
    const blobs = await Array.fromAsync(
      kv.list({ prefix: storeKeys.blobs(), start: cursor }, { limit: BLOBS_A_SWEEP }),
    );
    cursor = blobs.length < BLOBS_A_SWEEP ? undefined : blobs.at(-1)?.key;
    // Staging rows are read before heads: a blob without a staging row can no longer gain a head.
    const stagings = await kv.getMany(blobs.map((blob) => storeKeys.staging(headOf(blob).stageId)));
    const settled = blobs.filter((_, i) => stagings[i]?.version === null);
    const heads = await kv.getMany(settled.map((blob) => blob.value.owner));
    let removed = 0;
    for (const [i, blob] of settled.entries()) {
      if (signal.aborted) break;
      const head = headOf(blob);
      if (isNamedBy(heads[i]?.value, head)) continue;
      // Chunks first and the blob's own row last, so that an interrupted sweep finds the rest again.
      await deleteKeys(kv, [...chunkKeys(head), blob.key]);
      removed++;
    }
    return removed;
  };
}

function chunkKeys({ stageId, index, parts }: Head): ReturnType<typeof storeKeys.chunk>[] {
  return Array.from({ length: parts }, (_, part) => storeKeys.chunk(stageId, index, part));
}

function headOf({ key, value }: Row<BlobRow>): Head {
  const [, , stageId, index] = key;
  return { stageId: String(stageId), index: Number(index), parts: value.parts };
}

function isNamedBy(row: unknown, { stageId, index }: Head): boolean {
  const decoded = decodeRow(row);
  return decoded.kind === "head" && decoded.head.stageId === stageId && decoded.head.index === index;
}
