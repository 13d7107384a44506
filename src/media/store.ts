/** Files: on disk under the data folder by random names, each with a row that says what it is and until when. */
import { type FileRecord, mediaKeys } from "./rows.ts";
import type { Change } from "../store/kv.ts";

export interface MediaStore {
  /**
   * Streams to disk while hashing and counting, fsyncs, and only then resolves. Throws Problem payload_too_large past
   * `maxBytes` and removes what it wrote. Writes no row: the caller adds it to its own commit with `keep`.
   */
  write(content: ReadableStream<Uint8Array>, maxBytes: number): Promise<{ id: string; size: number; sha256: string }>;
  /** The first bytes, at most `length`. */
  head(fileId: string, length: number): Promise<Uint8Array>;
  /** Where the bytes lie. */
  path(fileId: string): string;
  /** Removes the bytes; a missing file is fine. */
  remove(fileId: string): Promise<void>;
}

/** Adds the file's rows to the change that first refers to it. A file without a row is swept as an orphan. */
export function keepFile(change: Change, file: FileRecord): void {
  change.set(mediaKeys.file(file.id), file);
  if (file.expiresAt !== null) change.set(mediaKeys.fileEnd(file.expiresAt, file.id), file.size);
}

/**
 * Adds the removal of a queued message's file to the change that ends the need for it; `remove` the bytes after the
 * commit. Received files end by the sweep alone.
 */
export function dropFile(change: Change, fileId: string): void {
  change.delete(mediaKeys.file(fileId));
}
