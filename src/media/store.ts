/** Files: on disk under the data folder, or in a bucket, by random names, each with a row that says what it is and until when. */
import { createHash } from "node:crypto";
import { Problem } from "../errors.ts";
import { type FileRecord, mediaKeys } from "./rows.ts";
import type { Change } from "../store/kv.ts";

/** A file that lies in the media store. */
export interface StoredFile {
  fileId: string;
  size: number;
  /** Hex. */
  sha256: string;
}

export interface MediaStore {
  /**
   * Streams to where files are kept while hashing and counting, and resolves when they are safe there. Throws Problem payload_too_large past
   * `maxBytes` and removes what it wrote. Writes no row: the caller adds it to its own commit with `keepFile`.
   */
  write(content: ReadableStream<Uint8Array>, maxBytes: number): Promise<StoredFile>;
  /** The first bytes, at most `length`. */
  head(fileId: string, length: number): Promise<Uint8Array>;
  /** So many bytes from `start` on. Throws Problem not_found when the file is gone. */
  read(fileId: string, part: { start: number; length: number }): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
  /** The file on this machine's disk, for as long as the handle lives. Throws Problem not_found when it is gone. */
  onDisk(fileId: string): Promise<LocalFile>;
  /** Removes the bytes; a missing file is fine. */
  remove(fileId: string): Promise<void>;
}

interface LocalFile extends AsyncDisposable {
  readonly path: string;
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

/** A file on its way into a store: its chunks, which throw Problem payload_too_large past a size, and then what it is. */
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

/** For processes that share no place for files: what needs one is refused, everything else works. */
export function noMediaStore(): MediaStore & { sweepOrphans(): Promise<number> } {
  const refused = () =>
    Promise.reject(new Problem("storage_unavailable", "There is no place for files here: PALOMA_MEDIA is not set."));
  return {
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
