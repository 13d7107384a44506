/**
 * Files that a client uploads once and sends later, as often as it likes. Received files are found in the same way. An
 * upload that is deleted or too old is no longer found, but its bytes stay for a day: messages that were accepted with
 * it still wait for their turn.
 */
import { notFound } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import { Change, isRow, type Kv, retryOnConflict, type Row } from "../store/kv.ts";
import { type FileRecord, mediaKeys } from "./rows.ts";
import { keepFile, type StoredFile } from "./store.ts";

const DAY_MS = 24 * 3_600_000;
const KEPT_MS = 30 * DAY_MS;
/** The longest that a message waits after a file was named for it. */
const NEEDED_MS = DAY_MS;
/** Index rows of files long gone that one upload removes. */
const TIDIED = 20;

interface UploadsDeps {
  kv: Kv;
  runtime: Pick<Runtime, "clock">;
}

export type Uploads = ReturnType<typeof makeUploads>;

export function makeUploads({ kv, runtime: { clock } }: UploadsDeps) {
  /** Keeps a stored file for 30 days. */
  async function keep(
    { fileId: id, size, sha256 }: StoredFile,
    { lineId, ...of }: Pick<FileRecord, "accountId" | "mimetype" | "filename"> & { lineId: string },
  ): Promise<void> {
    const usableUntil = clock.now() + KEPT_MS;
    const expiresAt = usableUntil + NEEDED_MS;
    const change = new Change();
    for await (const { key } of kv.list(olderThan(lineId, clock.now()), { limit: TIDIED })) change.delete(key);
    keepFile(change, { id, size, sha256, ...of, expiresAt, upload: { lineId, usableUntil } });
    await kv.commit(change.set(mediaKeys.upload(lineId, expiresAt, id), true));
  }

  /** Returns the account's file. Throws Problem not_found for an upload or a received file that is gone. */
  async function find(accountId: string, fileId: string): Promise<FileRecord> {
    return (await rowOf(accountId, fileId)).value;
  }

  /** Deletes the file. Throws Problem not_found. */
  async function remove(accountId: string, fileId: string): Promise<void> {
    await retryOnConflict(kv, async () => {
      const change = new Change();
      retire(change, await rowOf(accountId, fileId), clock.now());
      return { change, result: null };
    });
  }

  async function rowOf(accountId: string, fileId: string): Promise<Row<FileRecord>> {
    const slot = await kv.get(mediaKeys.file(fileId));
    // A message's own file has no expiry: it is found by nobody else.
    const usableUntil = slot.value?.upload?.usableUntil ?? slot.value?.expiresAt ?? 0;
    if (!isRow(slot) || slot.value.accountId !== accountId || clock.now() >= usableUntil) throw notFound("media");
    return slot;
  }

  return { keep, find, remove };
}

/** Deletes the files that were uploaded for the line, as `remove` of `Uploads` does. */
export async function removeUploads(kv: Kv, lineId: string, now: number): Promise<void> {
  for await (const { key } of kv.list({ prefix: mediaKeys.uploads(lineId) })) {
    await retryOnConflict(kv, async () => {
      const slot = await kv.get(mediaKeys.file(String(key.at(-1))));
      const change = new Change().delete(key);
      if (isRow(slot)) retire(change, slot, now);
      return { change, result: null };
    });
  }
}

function retire(change: Change, slot: Row<FileRecord>, now: number): void {
  const { id, upload, expiresAt } = slot.value;
  const end = Math.min(expiresAt ?? now, upload ? now + NEEDED_MS : now);
  if (expiresAt !== null) change.delete(mediaKeys.fileEnd(expiresAt, id));
  change.check(slot);
  keepFile(change, { ...slot.value, expiresAt: end, ...(upload ? { upload: { ...upload, usableUntil: now } } : {}) });
}

function olderThan(lineId: string, now: number) {
  return { prefix: mediaKeys.uploads(lineId), end: mediaKeys.upload(lineId, now, "") };
}
