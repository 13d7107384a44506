/**
 * Values of any size over an engine that takes 64 KiB: a large value lies in chunks, its row holds only a head.
 *
 * A head names a blob, and a blob's chunks never change, so a reader gets one value whole or reads the head again; it
 * never sees a mix. Chunks that fit go into the commit of their row. More is staged: written ahead in commits of its
 * own under a staging row, which the row's commit checks and deletes. Either way the value appears with the commit.
 * A blob that no head names any more is garbage from then on, and `sweepChunks` takes it.
 */
import type { Clock, Runtime } from "../../runtime.ts";
import { deleteKeys } from "../delete_range.ts";
import { assertFits, COMMIT_LIMITS } from "../limits.ts";
import { type BlobRow, isOwnRow, storeKeys } from "./rows.ts";
import {
  Change,
  type CommitOptions,
  isRow,
  type Key,
  type Kv,
  type Mutation,
  type Row,
  type Slot,
  StoreError,
} from "../kv.ts";
import { instanceNumber } from "./instance.ts";
import { decodeRow, encodeValue, type Head, headRow, joinChunks, splitChunks } from "./row_format.ts";
import { sizeBound } from "./size.ts";

/** Chunks of one staging commit: 10 of 60 KiB. */
const CHUNKS_A_COMMIT = 10;
/** A commit that was staged so long ago has died with its process. */
const STAGING_ABANDONED_MS = 60 * 60 * 1000;
/** Blobs that one run of the sweep looks at. */
const BLOBS_A_SWEEP = 1000;

export interface ChunkedKv extends Kv {
  /** Every row but those that the store keeps for itself, in the order of the keys; where the engine can, of one moment. */
  rows(): AsyncIterable<Row<unknown>>;
  /** Removes a slice of the chunks that no row names any more; the next call goes on from there. Answers how many blobs. */
  sweepChunks(signal: AbortSignal): Promise<number>;
}

/** Splits large values on the way in and joins them on the way out. */
export function withChunks(kv: Kv, options: { runtime: Pick<Runtime, "clock"> }): ChunkedKv {
  const { clock } = options.runtime;
  const nextStageId = stageIds(kv, clock);

  async function commit(change: Change, options?: CommitOptions): Promise<string | null> {
    assertFits(change, kv);
    const small = new Change();
    small.checks.push(...change.checks);
    const large: { key: Key; bytes: Uint8Array }[] = [];
    for (const mutation of change.mutations) {
      if (mutation.kind !== "set") small.mutations.push(mutation);
      else {
        const encoded = encodeValue(mutation.value);
        if (encoded.kind === "row") {
          small.mutations.push({ kind: "set", key: mutation.key, value: encoded.value, bytes: encoded.bytes });
        } else large.push({ key: mutation.key, bytes: encoded.bytes });
      }
    }
    if (large.length === 0 && change.orderedBuilds.length === 0) return await kv.commit(small, options);

    const stageId = await nextStageId();
    const blobs = large.map(({ key, bytes }, index) => makeBlob({ stageId, index, parts: 0 }, key, bytes));
    for (const blob of blobs) small.mutations.push(blob.head);
    change.orderedBuilds.forEach(({ sequence, build }, number) => {
      // Blobs of ordered builds are numbered after the others, each build in a range of its own.
      let index = large.length + number * COMMIT_LIMITS.mutations;
      small.ordered(sequence, (...place) =>
        build(...place).flatMap((mutation) => {
          if (mutation.kind !== "set") return [mutation];
          const encoded = encodeValue(mutation.value);
          if (encoded.kind === "row") return [{ ...mutation, value: encoded.value }];
          const blob = makeBlob({ stageId, index: index++, parts: 0 }, mutation.key, encoded.bytes);
          return [blob.head, ...blob.rows];
        }));
    });
    const rows = blobs.flatMap((blob) => blob.rows);
    if (rows.length === 0 || fitsTogether(small.mutations, rows)) {
      small.mutations.push(...rows);
      return await kv.commit(small, options);
    }
    return await commitStaged(stageId, rows, small);
  }

  /** Writes the rows ahead, then commits; again when a sweep took the staging row for abandoned. */
  async function commitStaged(stageId: string, rows: readonly Mutation[], small: Change): Promise<string | null> {
    for (;;) {
      for (let i = 0; i < rows.length; i += CHUNKS_A_COMMIT) {
        const ahead = new Change().set(storeKeys.staging(stageId), clock.now());
        ahead.mutations.push(...rows.slice(i, i + CHUNKS_A_COMMIT));
        await kv.commit(ahead);
      }
      const staging = await kv.get(storeKeys.staging(stageId));
      const whole = new Change().check(staging).delete(staging.key);
      whole.checks.push(...small.checks);
      whole.mutations.push(...small.mutations);
      whole.orderedBuilds.push(...small.orderedBuilds);
      const version = staging.version === null ? null : await kv.commit(whole);
      if (version !== null) return version;
      const now = await kv.get(storeKeys.staging(stageId));
      if (now.version !== null && now.version === staging.version) {
        await kv.commit(new Change().delete(staging.key));
        return null;
      }
    }
  }

  /** The slot with its value in one piece. */
  async function whole<T>(slot: Slot<unknown>): Promise<Slot<T>> {
    for (let seen = slot;;) {
      const decoded = decodeRow(seen.value);
      if (decoded.kind === "value") return { ...seen, value: decoded.value as T | null };
      const bytes = joinChunks(await kv.getMany(chunkKeys(decoded.head)));
      if (bytes) return { ...seen, value: bytes.value as T };
      const again = await kv.get<unknown>(seen.key);
      if (again.version === seen.version) throw new StoreError("unavailable", "chunks of a stored value are missing");
      seen = again;
    }
  }

  /** Where the next sweep goes on. */
  let cursor: Key | undefined;

  async function sweepChunks(signal: AbortSignal): Promise<number> {
    for await (const row of kv.list({ prefix: storeKeys.stagings() })) {
      const age = clock.now() - row.value;
      if (age > STAGING_ABANDONED_MS) await kv.commit(new Change().check(row).delete(row.key));
    }
    const blobs: Row<BlobRow>[] = [];
    for await (const row of kv.list({ prefix: storeKeys.blobs(), start: cursor }, { limit: BLOBS_A_SWEEP })) {
      blobs.push(row);
    }
    cursor = blobs.length < BLOBS_A_SWEEP ? undefined : blobs.at(-1)?.key;
    // The stagings are read before the heads: a blob without one can gain no head any more.
    const stagings = await kv.getMany(blobs.map((blob) => storeKeys.staging(nameOf(blob).stageId)));
    const settled = blobs.filter((_, i) => stagings[i]?.version === null);
    const heads = await kv.getMany(settled.map((blob) => blob.value.owner));
    let removed = 0;
    for (const [i, blob] of settled.entries()) {
      if (signal.aborted) break;
      if (isNamedBy(heads[i]?.value, nameOf(blob))) continue;
      // Chunks first, the blob's own row last, so that a sweep cut short finds the rest again.
      await deleteKeys(kv, [...chunkKeys(nameOf(blob)), blob.key]);
      removed++;
    }
    return removed;
  }

  return {
    mostChecks: kv.mostChecks,
    get: async <T>(key: Key) => await whole<T>(await kv.get(key)),
    getMany: async <T>(wanted: readonly Key[]) =>
      await Promise.all((await kv.getMany(wanted)).map((slot) => whole<T>(slot))),
    async *list<T>(range: { prefix: Key; start?: Key; end?: Key }, listing = {}) {
      if (range.prefix.length === 0) throw new RangeError("a list needs a prefix of at least one part");
      for await (const row of kv.list(range, listing)) {
        const slot = await whole<T>(row);
        if (isRow(slot)) yield slot;
      }
    },
    commit,
    close: () => kv.close(),
    async *rows() {
      for await (const row of kv.list({ prefix: [] })) {
        if (isOwnRow(row.key)) continue;
        const slot = await whole<unknown>(row);
        if (isRow(slot)) yield slot;
      }
    },
    sweepChunks,
  };
}

/** Names that no other process and no earlier run uses. */
function stageIds(kv: Kv, clock: Clock): () => Promise<string> {
  const instance = instanceNumber(kv, clock);
  let count = 0;
  return async () => `${await instance()}-${++count}`;
}

function makeBlob(name: Head, owner: Key, bytes: Uint8Array): { head: Mutation; rows: Mutation[] } {
  const chunks = splitChunks(bytes);
  const head: Head = { ...name, parts: chunks.length };
  const blobRow: BlobRow = { owner, parts: chunks.length };
  return {
    head: { kind: "set", key: owner, value: headRow(head) },
    rows: [
      { kind: "set", key: storeKeys.blob(head.stageId, head.index), value: blobRow },
      ...chunkKeys(head).map((key, part): Mutation => ({ kind: "set", key, value: chunks[part] })),
    ],
  };
}

function chunkKeys(head: Head): Key[] {
  return Array.from({ length: head.parts }, (_, part) => storeKeys.chunk(head.stageId, head.index, part));
}

function fitsTogether(...lists: readonly Mutation[][]): boolean {
  const mutations = lists.flat();
  const bytes = mutations.reduce((sum, each) => sum + (each.kind === "set" ? sizeBound(each.value) : 0), 0);
  return mutations.length <= COMMIT_LIMITS.mutations && bytes <= COMMIT_LIMITS.bytes;
}

function nameOf(blob: Row<BlobRow>): Head {
  const [, , stageId, index] = blob.key;
  return { stageId: String(stageId), index: Number(index), parts: blob.value.parts };
}

function isNamedBy(row: unknown, blob: Head): boolean {
  const decoded = decodeRow(row);
  return decoded.kind === "head" && decoded.head.stageId === blob.stageId && decoded.head.index === blob.index;
}
