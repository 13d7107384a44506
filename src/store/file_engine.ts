/**
 * The port to an engine that keeps a store in one file: what a data folder needs of it beside `kv.ts`.
 */
import type { Runtime } from "../runtime.ts";
import type { ChunkedKv } from "./layers/chunk.ts";

export interface FileEngine {
  /** Opens the store at `path`, and makes it where there is none. Throws StoreError. */
  open(path: string, options: { runtime: Runtime }): Promise<ChunkedKv>;
  /**
   * Takes the file at `path` for this process alone, without waiting; null when another has it. The system drops the
   * lock with the process, also after `kill -9`.
   */
  tryLock(path: string): Promise<FileLock | null>;
  /** Follows the commits to the store at `path`, which this process has open until the watch is closed. */
  watch(path: string): FileWatch;
  /** What the engine keeps beside an open store, and a killed process leaves there. */
  leftovers(path: string): readonly string[];
  /** Makes an archive of the empty file at `path`. */
  createArchive(path: string): ArchiveWriter;
  /** Opens an archive; null when the file is none. */
  openArchive(path: string): ArchiveReader | null;
  /** What a failure with one of these files means: a StoreError, unless the caller was wrong. */
  storeError(error: unknown): unknown;
}

export interface FileLock {
  /** Calling it again is fine. */
  release(): void;
}

export interface FileWatch {
  /** Whether anybody has committed since it was last asked, of this process or another; true where that is unknown. */
  hasChanged(): boolean;
  /** Calling it again is fine. */
  close(): void;
}

/** One file with a store as it stood at one moment, and files beside it. It is whole after `finish` alone. */
export interface ArchiveWriter extends Disposable {
  /** Copies the store at `path` while others write to it, and returns the number of its rows. Blocks the thread. */
  addStore(path: string): number;
  /** Adds a file in parts of any size, and returns its size. */
  addFile(name: string, parts: AsyncIterable<Uint8Array>): Promise<number>;
  finish(): void;
}

export interface ArchiveReader extends Disposable {
  /** The version of the archive's format; a reader knows those up to `ARCHIVE_FORMAT`. */
  readonly format: number;
  files(): readonly string[];
  readFile(name: string): Iterable<Uint8Array>;
  /** Writes the store into the empty file at `path`, and returns the number of its rows. Blocks the thread. */
  writeStore(path: string): number;
}

export const ARCHIVE_FORMAT = 1;
