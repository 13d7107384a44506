/** Keeps the media folder small: expired files, files over the disk's cap, and files that nothing refers to. */
import type { Runtime } from "../runtime.ts";
import { keys } from "../store/keys.ts";
import { Change, type Kv } from "../store/kv.ts";
import type { DiskMediaStore } from "./disk.ts";
import type { FileRecord } from "./store.ts";

/** All files together; past it the oldest received ones go, even before their 24 h. */
const MEDIA_DISK_CAP_BYTES = 10 * 1024 ** 3;
/** A file without a row is left alone for so long: it may belong to a restore, or to another process. */
const ORPHAN_AGE_MS = 3_600_000;
/** The same for a file that this process wrote: a bulk may fetch files for hours before its commit names them. */
const EXPECTED_AGE_MS = 24 * 3_600_000;

export interface SweepMediaContext {
  kv: Kv;
  media: DiskMediaStore;
  runtime: Runtime;
}

/** Removes files past their time, then the oldest received files until the rest fits. Files of queued messages stay. */
export async function sweepMedia(
  { kv, media, runtime }: SweepMediaContext,
  { capBytes = MEDIA_DISK_CAP_BYTES }: { capBytes?: number } = {},
): Promise<{ expired: number; overCap: number }> {
  const received: FileRecord[] = [];
  let total = 0;
  let expired = 0;
  const now = runtime.clock.now();
  for await (const { value: file } of kv.list({ prefix: keys.files() })) {
    if (file.expiresAt !== null && file.expiresAt <= now) {
      await removeFile({ kv, media }, file.id);
      expired++;
      continue;
    }
    total += file.size;
    if (file.expiresAt !== null) received.push(file);
  }
  received.sort((a, b) => a.createdAt - b.createdAt);
  let overCap = 0;
  for (; total > capBytes && overCap < received.length; overCap++) {
    const file = received[overCap]!;
    await removeFile({ kv, media }, file.id);
    total -= file.size;
  }
  if (overCap > 0) {
    runtime.log.warn({ files: overCap, capBytes }, "received files removed early: the disk cap is reached");
  }
  return { expired, overCap };
}

/** Removes what a crash left behind: unfinished writes, and files whose commit never came. Resolves to how many. */
export async function sweepOrphans(
  { kv, media, runtime }: SweepMediaContext,
  { signal }: { signal?: AbortSignal } = {},
): Promise<number> {
  let removed = 0;
  const now = runtime.clock.now();
  for await (const { fileId, path, modifiedAt } of media.files()) {
    if (signal?.aborted) break;
    if (now - modifiedAt < ORPHAN_AGE_MS) continue;
    if (fileId !== null) {
      const row = await kv.get(keys.file(fileId));
      if (row.value !== null) {
        media.seen(fileId);
        continue;
      }
      if (media.isExpected(fileId) && now - modifiedAt < EXPECTED_AGE_MS) continue;
      await media.remove(fileId);
    } else {
      await Deno.remove(path).catch(() => {});
    }
    removed++;
  }
  return removed;
}

/** Row first: a crash between the two leaves an orphan, never a link to nothing. */
async function removeFile({ kv, media }: Pick<SweepMediaContext, "kv" | "media">, fileId: string): Promise<void> {
  await kv.commit(new Change().delete(keys.file(fileId)));
  await media.remove(fileId);
}
