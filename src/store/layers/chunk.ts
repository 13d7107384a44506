/**
 * Values of any size on an engine that takes 64 KiB: a large value is stored as a blob, in chunks that never change, and
 * its row holds only a head. A blob that no head refers to is garbage for good, and a sweep removes it.
 *
 * A reader gets one version of a value whole, or reads the head again; it never sees a mix. Chunks that fit are written
 * in the commit of their row. Larger blobs are staged: written ahead in commits of their own under a staging row, which
 * the row's commit checks and deletes. Either way the value becomes visible with that commit.
 */
import { Buffer } from "node:buffer";
import { inBatches } from "../../base/batches.ts";
import type { Clock, Runtime } from "../../runtime.ts";
import { deleteKeys } from "../delete_range.ts";
import {
  Change,
  type CommitOptions,
  isRow,
  type Key,
  type Kv,
  type ListOptions,
  type Mutation,
  type Range,
  type Row,
  type Slot,
  StoreError,
  stretchOf,
} from "../kv.ts";
import { instanceNumber } from "./order.ts";
import { CHUNK_BYTES, decodeRow, deserialise, encodeValue, type Head, headRow } from "./row_format.ts";
import { type BlobRow, isOwnRow, storeKeys } from "./rows.ts";
import { assertFits, COMMIT_LIMITS, isWithin, loadOf } from "../limits.ts";

/** Chunks in one staging commit, of 60 KiB each. */
const CHUNKS_A_COMMIT = 10;
/**
 * What an ordered build may write beside the rest of its commit: an event of the longest text, of two bytes a
 * character. Its size is known only once it has its place, when nothing can be staged any more.
 */
const ORDERED_BYTES = 560 * 1024;
/** A commit staged longer ago than this is abandoned: its process has died. */
const STAGING_ABANDONED_MS = 60 * 60 * 1000;
/** Blobs examined by one run of the sweep. */
const BLOBS_A_SWEEP = 1000;

export interface ChunkedKv extends Kv {
  /** Lists every row except the store's own, in the order of the keys; a snapshot if the engine can give one. */
  rows(): AsyncIterable<Row<unknown>>;
  /**
   * Removes a slice of the unreferenced blobs, continuing where the last call stopped. Resolves to the number of blobs.
   */
  sweepChunks(signal: AbortSignal): Promise<number>;
}

/** Splits large values on the way in and joins them on the way out. */
export function withChunks(kv: Kv, { runtime: { clock } }: { runtime: Pick<Runtime, "clock"> }): ChunkedKv {
  const nextStageId = stageIds(kv, clock);

  async function commit(change: Change, options?: CommitOptions): Promise<string | null> {
    assertFits(change, kv);
    const { small, large } = bySize(change);
    if (large.length === 0 && change.orderedBuilds.length === 0) return await kv.commit(small, options);

    const stageId = await nextStageId();
    const blobs = large.map(({ key, bytes }, index) => makeBlob({ stageId, index }, key, bytes));
    for (const { head } of blobs) small.mutations.push(head);
    change.orderedBuilds.forEach(({ sequence, build }, number) => {
      // Blobs of ordered builds are numbered after the others; each build has a range of its own.
      const first = large.length + number * COMMIT_LIMITS.mutations;
      small.ordered(sequence, (...place) => inChunks(build(...place), { stageId, first }));
    });
    const rows = blobs.flatMap((blob) => blob.rows);
    const load = loadOf({ checks: [], mutations: [...small.mutations, ...rows] });
    const kept = change.orderedBuilds.length > 0 ? ORDERED_BYTES : 0;
    const limits = { ...COMMIT_LIMITS, bytes: COMMIT_LIMITS.bytes - kept };
    if (rows.length > 0 && !isWithin(load, limits)) return await commitStaged(stageId, rows, small);
    small.mutations.push(...rows);
    return await kv.commit(small, options);
  }

  /** Writes the rows ahead, then commits. Starts over if a sweep removed the staging row as abandoned. */
  async function commitStaged(stageId: string, rows: readonly Mutation[], small: Change): Promise<string | null> {
    for (;;) {
      for (const some of inBatches(rows, CHUNKS_A_COMMIT)) {
        const ahead = new Change().set(storeKeys.staging(stageId), clock.now());
        ahead.mutations.push(...some);
        await kv.commit(ahead);
      }
      const staging = await kv.get(storeKeys.staging(stageId));
      const published = new Change().check(staging).delete(staging.key).include(small);
      const version = staging.version === null ? null : await kv.commit(published);
      if (version !== null) return version;
      const now = await kv.get(storeKeys.staging(stageId));
      if (now.version !== null && now.version === staging.version) {
        await kv.commit(new Change().delete(staging.key));
        return null;
      }
    }
  }

  /** Returns the slot with its value reassembled. */
  async function whole<T>(slot: Slot<unknown>): Promise<Slot<T>> {
    for (let seen = slot;;) {
      const decoded = decodeRow(seen.value);
      const found = decoded.kind === "value" ? decoded : await readBlob(kv, decoded.head);
      if (found) return { ...seen, value: found.value as T | null };
      const again = await kv.get<unknown>(seen.key);
      if (again.version === seen.version) throw new StoreError("unavailable", "chunks of a stored value are missing");
      seen = again;
    }
  }

  return {
    ...kv,
    get: async <T>(key: Key) => await whole<T>(await kv.get(key)),
    getMany: async <T>(wanted: readonly Key[]) =>
      await Promise.all((await kv.getMany(wanted)).map((slot) => whole<T>(slot))),
    async *list<T>(range: Range<T>, options?: ListOptions) {
      if (range.prefix.length === 0) throw new RangeError("a list needs a prefix of at least one part");
      for await (const row of kv.list(range, options)) {
        const slot = await whole<T>(row);
        if (isRow(slot)) yield slot;
      }
    },
    commit,
    async *rows() {
      for await (const row of kv.list({ prefix: [] })) {
        if (isOwnRow(row.key)) continue;
        const slot = await whole<unknown>(row);
        if (isRow(slot)) yield slot;
      }
    },
    sweepChunks: makeSweepBlobs(kv, clock),
  };
}

/** Separates the values that fit a row from those that must become blobs. Ordered builds are left out. */
function bySize({ checks, mutations }: Change): { small: Change; large: { key: Key; bytes: Uint8Array }[] } {
  const small = new Change();
  small.checks.push(...checks);
  const large: { key: Key; bytes: Uint8Array }[] = [];
  for (const mutation of mutations) {
    if (mutation.kind !== "set") {
      small.mutations.push(mutation);
      continue;
    }
    const { kind, key } = mutation;
    const encoded = encodeValue(mutation.value);
    if (encoded.kind === "large") large.push({ key, bytes: encoded.bytes });
    else small.mutations.push({ kind, key, value: encoded.value, bytes: encoded.bytes });
  }
  return { small, large };
}

/** Splits what an ordered build writes; all of it is part of the commit. `first`: the index of its first blob. */
function inChunks(mutations: readonly Mutation[], { stageId, first }: { stageId: string; first: number }): Mutation[] {
  let index = first;
  return mutations.flatMap((mutation) => {
    if (mutation.kind !== "set") return [mutation];
    const encoded = encodeValue(mutation.value);
    if (encoded.kind === "row") return [{ ...mutation, value: encoded.value }];
    const { head, rows } = makeBlob({ stageId, index: index++ }, mutation.key, encoded.bytes);
    return [head, ...rows];
  });
}

/** Splits a value into a blob: the head, for the value's own row at the key `owner`, and the blob's rows. */
function makeBlob(
  { stageId, index }: Omit<Head, "parts">,
  owner: Key,
  bytes: Uint8Array,
): { head: Mutation; rows: Mutation[] } {
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
async function readBlob(kv: Kv, head: Head): Promise<{ value: unknown } | null> {
  const chunks: Uint8Array[] = [];
  for (const { value } of await kv.getMany(chunkKeys(head))) {
    if (value === null) return null;
    chunks.push(value);
  }
  return { value: deserialise(Buffer.concat(chunks)) };
}

/** Returns a generator of stage ids that are unique across processes and restarts. */
function stageIds(kv: Kv, clock: Clock): () => Promise<string> {
  const instance = instanceNumber(kv, clock);
  let count = 0;
  return async () => `${await instance()}-${++count}`;
}

/**
 * Returns a sweep that removes a slice of the garbage at each call, continuing where it stopped; it resolves to the
 * count.
 */
function makeSweepBlobs(kv: Kv, clock: Clock): (signal: AbortSignal) => Promise<number> {
  /** Where the next call continues. */
  let cursor: Key | null = null;
  return async (signal) => {
    for await (const row of kv.list({ prefix: storeKeys.stagings() })) {
      const age = clock.now() - row.value;
      if (age > STAGING_ABANDONED_MS) await kv.commit(new Change().check(row).delete(row.key));
    }
    const { rows: blobs, next } = await stretchOf(kv, storeKeys.blobs(), { from: cursor, limit: BLOBS_A_SWEEP });
    cursor = next;
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
