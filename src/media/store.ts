/** The media store: files on disk or in a bucket, under random names, each with a row that describes it. */
import { createHash } from "node:crypto";
import { Problem } from "../errors.ts";
import { type FileRecord, mediaKeys } from "./rows.ts";
import type { Change } from "../store/kv.ts";

/** A file in the media store. */
export interface StoredFile {
  fileId: string;
  size: number;
  /** Hex. */
  sha256: string;
  /** Set in a message if the file is not the message's own: it was uploaded before, and stays. */
  shared?: true;
}

export interface MediaStore {
  /** Throws Problem storage_unavailable where files have no place, StoreError `full` while there is no room. */
  assertPlace(): void;
  /**
   * Streams the content into the store, hashing and counting it; resolves once it is safely stored. Past `maxBytes` it
   * removes what it wrote and throws Problem payload_too_large. Writes no row: the caller adds that to its own commit
   * with `keepFile`.
   */
  write(content: ReadableStream<Uint8Array>, maxBytes: number): Promise<StoredFile>;
  /** Reads the first bytes, at most `length`. */
  head(fileId: string, length: number): Promise<Uint8Array>;
  /** Reads `length` bytes from `start` on. Throws Problem not_found if the file is gone. */
  read(fileId: string, part: { start: number; length: number }): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
  /**
   * Returns the file on the local disk, as long as the handle is held. Throws Problem not_found if it is gone, and the
   * signal's reason.
   */
  onDisk(fileId: string, signal: AbortSignal): Promise<AsyncDisposable & { readonly path: string }>;
  /** Removes the bytes; a missing file is not an error. */
  remove(fileId: string): Promise<void>;
}

/** Adds the file's rows to the change that first refers to it. Files without a row are swept as orphans. */
export function keepFile(change: Change, file: FileRecord): void {
  change.set(mediaKeys.file(file.id), file);
  if (file.expiresAt !== null) change.set(mediaKeys.fileEnd(file.expiresAt, file.id), file.size);
}

/**
 * Adds the removal of a queued message's file to the change after which it is no longer needed. The caller removes the
 * bytes with `remove` after the commit. Received files are removed only by the sweep.
 */
export function dropFile(change: Change, fileId: string): void {
  change.delete(mediaKeys.file(fileId));
}

/**
 * Measures content on its way into a store: its chunks, which throw Problem payload_too_large past a size, then the
 * result.
 */
export function measured(
  content: AsyncIterable<Uint8Array>,
  maxBytes: number,
): { chunks: AsyncIterable<Uint8Array>; result(): Omit<StoredFile, "fileId"> } {
  const hash = createHash("sha256");
  let size = 0;
  async function* chunks(): AsyncIterable<Uint8Array> {
    for await (const chunk of content) {
      size += chunk.length;
      if (size > maxBytes) {
        throw new Problem("payload_too_large", `The file may have ${maxBytes / 1024 ** 2} MiB at most.`);
      }
      hash.update(chunk);
      yield chunk;
    }
  }
  return { chunks: chunks(), result: () => ({ size, sha256: hash.digest("hex") }) };
}

/** Returns a store for processes that share no place for files: operations that need one are refused. */
export function noMediaStore(): MediaStore & { sweepOrphans(): Promise<number> } {
  const refusal = () =>
    new Problem("storage_unavailable", "There is no place for files here: PALOMA_MEDIA is not set.");
  const refused = () => Promise.reject(refusal());
  return {
    assertPlace() {
      throw refusal();
    },
    async write(content) {
      await content.cancel();
      return await refused();
    },
    head: refused,
    read: refused,
    onDisk: refused,
    remove: () => Promise.resolve(),
    sweepOrphans: () => Promise.resolve(0),
  };
}
