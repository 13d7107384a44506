/**
 * Values of any size on an engine that takes 64 KiB: a large value is stored as a blob, and its row holds only a head.
 *
 * A reader gets one version of a value whole, or reads the head again; it never sees a mix. Chunks that fit are written
 * in the commit of their row. Larger blobs are staged: written ahead in commits of their own under a staging row, which
 * the row's commit checks and deletes. Either way the value becomes visible with that commit.
 */
import { piecesOf } from "../../base/batches.ts";
import type { Runtime } from "../../runtime.ts";
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
} from "../kv.ts";
import { assertFits, COMMIT_LIMITS } from "../limits.ts";
import { makeBlob, makeSweepBlobs, readBlob, stageIds } from "./blob.ts";
import { decodeRow, encodeValue } from "./row_format.ts";
import { isOwnRow, storeKeys } from "./rows.ts";
import { sizeBound } from "./size.ts";

/** Chunks in one staging commit, of 60 KiB each. */
const CHUNKS_A_COMMIT = 10;

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
    if (rows.length > 0 && !fitsTogether(small.mutations, rows)) return await commitStaged(stageId, rows, small);
    small.mutations.push(...rows);
    return await kv.commit(small, options);
  }

  /** Writes the rows ahead, then commits. Starts over if a sweep removed the staging row as abandoned. */
  async function commitStaged(stageId: string, rows: readonly Mutation[], small: Change): Promise<string | null> {
    for (;;) {
      for (const some of piecesOf(rows, CHUNKS_A_COMMIT)) {
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

function fitsTogether(...lists: readonly Mutation[][]): boolean {
  const mutations = lists.flat();
  const bytes = mutations.reduce((sum, each) => sum + (each.kind === "set" ? sizeBound(each.value) : 0), 0);
  return mutations.length <= COMMIT_LIMITS.mutations && bytes <= COMMIT_LIMITS.bytes;
}
