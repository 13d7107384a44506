/**
 * The port to an engine that keeps a store in one file: what a data folder needs in addition to `kv.ts`.
 */
import type { Runtime } from "../runtime.ts";
import type { ChunkedKv } from "./layers/chunk.ts";

export interface FileEngine {
  /** Opens the store at `path`, creating it if there is none. Throws StoreError. */
  open(path: string, options: { runtime: Runtime }): Promise<ChunkedKv>;
  /**
   * Locks the file at `path` for this process, without waiting; null if another process holds it. The operating system
   * releases the lock when the process ends, even after `kill -9`.
   */
  tryLock(path: string): Promise<FileLock | null>;
  /** Watches for commits to the store at `path`, which this process must keep open until the watch is closed. */
  watch(path: string): FileWatch;
  /** The engine's side files of an open store, which a killed process leaves behind. */
  leftovers(path: string): readonly string[];
  /** Forgets the store that is no longer at `path`, before another one takes its place. */
  forget(path: string): Promise<unknown>;
  /** Begins an archive in the empty file at `path`. */
  createArchive(path: string): ArchiveWriter;
  /** Opens the file as an archive. Reads nothing yet: its content may come afterwards. */
  openArchive(path: string): ArchiveReader;
  /** Translates a failure on one of these files: a StoreError, unless it was the caller's mistake. */
  storeError(error: unknown): unknown;
}

export interface FileLock {
  /** Calling it again is fine. */
  release(): void;
}

export interface FileWatch {
  /** Whether any process, this one included, has committed since the last call; true if that is unknown. */
  hasChanged(): boolean;
  /** Calling it again is fine. */
  close(): void;
}

/** One file with a snapshot of a store and further files. It is complete only after `finish`. */
export interface ArchiveWriter extends Disposable {
  /**
   * Copies the store at `path`, which may be written to meanwhile, and returns its number of rows. Blocks the thread.
   */
  addStore(path: string): number;
  /** Adds a file, given in parts of any size, and returns its size. */
  addFile(name: string, parts: AsyncIterable<Uint8Array>): Promise<number>;
  finish(): void;
}

export interface ArchiveReader extends Disposable {
  /** The version of the archive's format; readers know versions up to `ARCHIVE_FORMAT`. Null if it is no archive. */
  format(): number | null;
  files(): readonly string[];
  readFile(name: string): Iterable<Uint8Array>;
  /** Writes the store into the empty file at `path` and returns its number of rows. Blocks the thread. */
  writeStore(path: string): number;
}

export const ARCHIVE_FORMAT = 1;
