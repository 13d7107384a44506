/** Cleans the media store: expired files, files above the disk limit, and files that nothing refers to. */
import type { Runtime } from "../runtime.ts";
import { Change, type Kv, type Range, type Row } from "../store/kv.ts";
import type { DiskMediaStore, FileOnDisk } from "./disk_store.ts";
import { type FileRecord, mediaKeys } from "./rows.ts";
import type { DiskShares } from "./fair_shares.ts";
import type { MediaStore } from "./store.ts";

/** Minimum age at which a file without a row is removed: it may belong to a restore or to another process. */
const ORPHAN_AGE_MS = 3_600_000;
/** The same for files written by this process: a bulk may fetch files for hours before its commit refers to them. */
const EXPECTED_AGE_MS = 24 * 3_600_000;
/** Files removed per commit, and per run of the sweep. */
const AT_ONCE = 100;
const TURN = 10_000;

interface SweepMediaContext {
  kv: Kv;
  /** `bytes` is absent for a bucket, which has no disk limit. */
  media: Pick<MediaStore, "remove"> & Partial<Pick<DiskMediaStore, "bytes">>;
  runtime: Runtime;
  shares: DiskShares;
}

/**
 * Removes expired received files. While all files together exceed `capBytes`, it also removes the oldest received files
 * of accounts that have more than their share, even before their 24 h are over. Files of queued messages stay. Each run
 * is bounded, and stops between two commits when the signal aborts; the next one continues.
 */
export async function sweepMedia(
  context: SweepMediaContext,
  { signal, capBytes }: { signal?: AbortSignal; capBytes: number },
): Promise<{ expired: number; overCap: number }> {
  const { kv, media, runtime, shares } = context;
  const removed = { expired: 0, overCap: 0 };
  const mayContinue = () => !signal?.aborted && removed.expired + removed.overCap < TURN;

  const due = { prefix: mediaKeys.fileEnds(), end: mediaKeys.fileEnd(runtime.clock.now() + 1, "") };
  while (mayContinue()) {
    const files = await first(kv, due);
    if (files.length === 0) break;
    await removeFiles(context, files);
    removed.expired += files.length;
  }
  const bytes = () => media.bytes?.() ?? 0;
  if (bytes() <= capBytes) shares.clear();
  else if (mayContinue()) await shares.weigh(kv, capBytes);
  // All links are valid equally long, and uploads longer: the first to expire is the oldest received file.
  let range: Range<number> = { prefix: mediaKeys.fileEnds() };
  while (mayContinue() && bytes() > capBytes) {
    const oldest = await first(kv, range);
    if (oldest.length === 0) break;
    const files = await surplus(context, oldest, bytes() - capBytes);
    if (files.length > 0) await removeFiles(context, files);
    removed.overCap += files.length;
    const [, endsAt, fileId] = oldest.at(-1)!.key;
    range = { ...range, start: mediaKeys.fileEnd(Number(endsAt), `${fileId}~`) };
  }
  if (removed.overCap > 0) {
    runtime.log.warn({ files: removed.overCap, capBytes }, "received files removed early: the disk cap is reached");
  }
  return removed;
}

/** Selects files to remove, oldest first, until enough bytes are freed. */
async function surplus(
  { kv, shares }: SweepMediaContext,
  oldest: readonly Row<number>[],
  bytes: number,
): Promise<Row<number>[]> {
  const rows = await kv.getMany(oldest.map(({ key }) => mediaKeys.file(String(key[2]))));
  let left = bytes;
  return oldest.filter(({ value: size }, i) => {
    // A file without a row belongs to no account.
    const accountId = rows[i]!.value?.accountId ?? "";
    if (left <= 0 || (accountId !== "" && !shares.mustGive(accountId))) return false;
    shares.gave(accountId, size);
    left -= size;
    return true;
  });
}

async function first(kv: Kv, range: Range<number>): Promise<Row<number>[]> {
  return await Array.fromAsync(kv.list(range, { limit: AT_ONCE }));
}

/**
 * Removes files first: on a full disk the store takes no commit until there is room. A crash in between leaves rows to
 * the next run, whose links lead to nothing; a file that cannot be removed is left to the sweep of orphans.
 */
async function removeFiles({ kv, media }: SweepMediaContext, ends: readonly Row<number>[]): Promise<void> {
  const fileIds = ends.map(({ key }) => String(key[2]));
  const change = new Change();
  for (const { key } of ends) change.delete(key);
  for (const fileId of fileIds) change.delete(mediaKeys.file(fileId));
  try {
    for (const fileId of fileIds) await media.remove(fileId);
  } finally {
    await kv.commit(change);
  }
}

/** Removes leftovers of crashes: unfinished writes, and files that were never committed. Resolves to their number. */
export async function sweepOrphans(
  { kv, media, runtime }: { kv: Kv; media: DiskMediaStore; runtime: Runtime },
  { signal }: { signal?: AbortSignal } = {},
): Promise<number> {
  let removed = 0;
  const now = runtime.confirmed.now();
  for await (const files of media.folders()) {
    if (signal?.aborted) break;
    const old = files.filter(({ modifiedAt }) => now - modifiedAt >= ORPHAN_AGE_MS);
    const rows = await rowsOf(kv, old);
    for (const file of old) {
      if (isNeeded(file, rows.get(file.fileId ?? "") ?? null)) continue;
      if (file.fileId === null) await Deno.remove(file.path).catch(() => {});
      else {
        // Long expired and still here: an older build on the same store does not write the index of expiries.
        if (rows.has(file.fileId)) await kv.commit(new Change().delete(mediaKeys.file(file.fileId)));
        await media.remove(file.fileId);
      }
      removed++;
    }
  }
  return removed;

  function isNeeded({ fileId, modifiedAt }: FileOnDisk, row: FileRecord | null): boolean {
    if (fileId === null) return false;
    if (row === null) return media.isExpected(fileId) && now - modifiedAt < EXPECTED_AGE_MS;
    media.seen(fileId);
    return row.expiresAt === null || now - row.expiresAt < ORPHAN_AGE_MS;
  }
}

/** Resolves to the rows of the files that have one, by id. */
async function rowsOf(kv: Kv, files: readonly FileOnDisk[]): Promise<Map<string, FileRecord>> {
  const ids = files.map(({ fileId }) => fileId).filter((id) => id !== null);
  const rows = new Map<string, FileRecord>();
  for (const { value } of await kv.getMany(ids.map((id) => mediaKeys.file(id)))) if (value) rows.set(value.id, value);
  return rows;
}
