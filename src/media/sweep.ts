/** Keeps the media store small: expired files, files over the disk's cap, and files that nothing refers to. */
import type { Runtime } from "../runtime.ts";
import { Change, type Kv, type Range, type Row } from "../store/kv.ts";
import type { DiskMediaStore, FileOnDisk } from "./disk.ts";
import { type FileRecord, mediaKeys } from "./rows.ts";
import type { MediaStore } from "./store.ts";

/** All files together; past it the oldest received ones go, even before their 24 h. */
const MEDIA_DISK_CAP_BYTES = 10 * 1024 ** 3;
/** A file without a row is left alone for so long: it may belong to a restore, or to another process. */
const ORPHAN_AGE_MS = 3_600_000;
/** The same for a file that this process wrote: a bulk may fetch files for hours before its commit names them. */
const EXPECTED_AGE_MS = 24 * 3_600_000;
/** Files that are removed in one commit, and in one turn of the sweep. */
const AT_ONCE = 100;
const TURN = 10_000;

interface SweepMediaContext {
  kv: Kv;
  /** `bytes` of files in a bucket are nobody's concern: it is not this disk that they fill. */
  media: Pick<MediaStore, "remove"> & Partial<Pick<DiskMediaStore, "bytes">>;
  runtime: Runtime;
}

interface SweepOrphansContext {
  kv: Kv;
  media: DiskMediaStore;
  runtime: Runtime;
}

interface SweepMediaOptions {
  /** Ends the sweep between two commits. */
  signal?: AbortSignal;
  capBytes?: number;
}

/**
 * Removes received files past their time, then the oldest of them until the rest fits. Files of queued messages stay.
 * Reads what it removes and nothing else. A turn is bounded: what is left over comes with the next one.
 */
export async function sweepMedia(
  context: SweepMediaContext,
  { signal, capBytes = MEDIA_DISK_CAP_BYTES }: SweepMediaOptions = {},
): Promise<{ expired: number; overCap: number }> {
  const { kv, media, runtime } = context;
  const removed = { expired: 0, overCap: 0 };
  const mayGoOn = () => !signal?.aborted && removed.expired + removed.overCap < TURN;

  const due = { prefix: mediaKeys.fileEnds(), end: mediaKeys.fileEnd(runtime.clock.now() + 1, "") };
  while (mayGoOn()) {
    const files = await first(kv, due);
    if (files.length === 0) break;
    await removeFiles(context, files);
    removed.expired += files.length;
  }
  // All links live equally long, so that the first to end is the oldest.
  const bytes = () => media.bytes?.() ?? 0;
  while (mayGoOn() && bytes() > capBytes) {
    const oldest = await first(kv, { prefix: mediaKeys.fileEnds() });
    if (oldest.length === 0) break;
    const files = enough(oldest, bytes() - capBytes);
    await removeFiles(context, files);
    removed.overCap += files.length;
  }
  if (removed.overCap > 0) {
    runtime.log.warn({ files: removed.overCap, capBytes }, "received files removed early: the disk cap is reached");
  }
  return removed;
}

/** The first of the files that together have so many bytes. */
function enough(files: readonly Row<number>[], bytes: number): readonly Row<number>[] {
  let sum = 0;
  const last = files.findIndex(({ value: size }) => (sum += size) >= bytes);
  return last === -1 ? files : files.slice(0, last + 1);
}

async function first(kv: Kv, range: Range<number>): Promise<Row<number>[]> {
  return await Array.fromAsync(kv.list(range, { limit: AT_ONCE }));
}

/** Rows first: a crash between the two leaves orphans, never a link to nothing. */
async function removeFiles({ kv, media }: SweepMediaContext, ends: readonly Row<number>[]): Promise<void> {
  const fileIds = ends.map(({ key }) => String(key[2]));
  const change = new Change();
  for (const { key } of ends) change.delete(key);
  for (const fileId of fileIds) change.delete(mediaKeys.file(fileId));
  await kv.commit(change);
  for (const fileId of fileIds) await media.remove(fileId);
}

/** Removes what a crash left behind: unfinished writes, and files whose commit never came. Resolves to how many. */
export async function sweepOrphans(
  { kv, media, runtime }: SweepOrphansContext,
  { signal }: { signal?: AbortSignal } = {},
): Promise<number> {
  let removed = 0;
  const now = runtime.clock.now();
  for await (const files of media.folders()) {
    if (signal?.aborted) break;
    const old = files.filter(({ modifiedAt }) => now - modifiedAt >= ORPHAN_AGE_MS);
    const rows = await rowsOf(kv, old);
    for (const file of old) {
      if (isNeeded(file, rows.get(file.fileId ?? "") ?? null)) continue;
      if (file.fileId === null) await Deno.remove(file.path).catch(() => {});
      else {
        // Long over and still here: an older build that runs beside this one does not write down when its files end.
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

/** Rows of the files that have one, by id. */
async function rowsOf(kv: Kv, files: readonly FileOnDisk[]): Promise<Map<string, FileRecord>> {
  const ids = files.map(({ fileId }) => fileId).filter((id) => id !== null);
  const rows = new Map<string, FileRecord>();
  for (const { value } of await kv.getMany(ids.map((id) => mediaKeys.file(id)))) if (value) rows.set(value.id, value);
  return rows;
}
