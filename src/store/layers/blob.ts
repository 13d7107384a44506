/**
 * Blobs: values that are too large for a row, in chunks that an engine takes. A blob's chunks never change, and one row
 * names it, by its head. One that no head names any more is garbage from then on, and a sweep takes it.
 */
import v8 from "node:v8";
import { Buffer } from "node:buffer";
import type { Clock } from "../../runtime.ts";
import { deleteKeys } from "../delete_range.ts";
import { Change, type Key, type Kv, type Mutation, type Row } from "../kv.ts";
import { instanceNumber } from "./order.ts";
import { CHUNK_BYTES, decodeRow, type Head, headRow } from "./row_format.ts";
import { type BlobRow, storeKeys } from "./rows.ts";

/** A commit that was staged so long ago has died with its process. */
const STAGING_ABANDONED_MS = 60 * 60 * 1000;
/** Blobs that one run of the sweep looks at. */
const BLOBS_A_SWEEP = 1000;

/** What is written of a blob: the head, in the row of its value, and the rows beside it. */
interface NewBlob {
  head: Mutation;
  rows: Mutation[];
}

/** `owner`: the key of the value. */
export function makeBlob({ stageId, index }: Omit<Head, "parts">, owner: Key, bytes: Uint8Array): NewBlob {
  const chunks: Uint8Array[] = [];
  // A copy each: a view would bring the whole buffer into every row.
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

/** The value that the blob holds, or null when a chunk of it is gone. */
export async function readBlob(kv: Kv, head: Head): Promise<{ value: unknown } | null> {
  const chunks: Uint8Array[] = [];
  for (const { value } of await kv.getMany(chunkKeys(head))) {
    if (value === null) return null;
    chunks.push(value);
  }
  return { value: v8.deserialize(Buffer.concat(chunks)) };
}

/** Names of stages that no other process and no earlier run uses. */
export function stageIds(kv: Kv, clock: Clock): () => Promise<string> {
  const instance = instanceNumber(kv, clock);
  let count = 0;
  return async () => `${await instance()}-${++count}`;
}

/** Removes a slice of the blobs that no row names any more; the next call goes on from there. Answers how many. */
export function makeSweepBlobs(kv: Kv, clock: Clock): (signal: AbortSignal) => Promise<number> {
  /** Where the next sweep goes on. */
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
    // The stagings are read before the heads: a blob without one can gain no head any more.
    const stagings = await kv.getMany(blobs.map((blob) => storeKeys.staging(headOf(blob).stageId)));
    const settled = blobs.filter((_, i) => stagings[i]?.version === null);
    const heads = await kv.getMany(settled.map((blob) => blob.value.owner));
    let removed = 0;
    for (const [i, blob] of settled.entries()) {
      if (signal.aborted) break;
      const head = headOf(blob);
      if (isNamedBy(heads[i]?.value, head)) continue;
      // Chunks first, the blob's own row last, so that a sweep cut short finds the rest again.
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
