/** The media store on disk: `<folder>/<last two characters of the id>/<id>`, readable by the owner only. */
import { exists, giveToOwner, isDiskFull, syncFolder, unlessMissing, writeAll } from "../base/files.ts";
import { join } from "node:path";
import { notFound } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import { StoreError } from "../store/kv.ts";
import { measured, type MediaStore, type StoredFile } from "./store.ts";

/** A media store that can also list its files, for the sweep. */
export interface DiskMediaStore extends MediaStore {
  /** Returns the file's path. */
  path(fileId: string): string;
  /** Lists all files, finished or not, folder by folder: a few thousand at a time out of a million. */
  folders(): AsyncIterable<FileOnDisk[]>;
  /** Returns the total size of the finished files; too low until `folders` has been read to its end once. */
  bytes(): number;
  /** Whether this process wrote the file and has not seen its row yet: a commit that refers to it may be pending. */
  isExpected(fileId: string): boolean;
  /** Called when the file's row has been seen. */
  seen(fileId: string): void;
}

export interface FileOnDisk {
  /** Null for the remains of an interrupted write. */
  fileId: string | null;
  path: string;
  size: number;
  /** Unix ms. */
  modifiedAt: number;
}

/** Suffix of a file that is being written. */
const UNFINISHED = ".part";

/** Opens the store in `folder`, creating it if necessary. */
export async function openDiskMediaStore(folder: string, runtime: Runtime): Promise<DiskMediaStore> {
  await makeFolder(folder);
  const expected = new Set<string>();
  const usage = new DiskUsage();
  const shardOf = (fileId: string) => fileId.slice(-2);
  const folderOf = (fileId: string) => join(folder, shardOf(fileId));
  const path = (fileId: string) => join(folderOf(fileId), fileId);

  return {
    assertPlace() {},
    async write(content, maxBytes) {
      const fileId = runtime.ids.next("med");
      const unfinished = path(fileId) + UNFINISHED;
      expected.add(fileId);
      try {
        await makeFolder(folderOf(fileId));
        const written = await writeFile(unfinished, content, { maxBytes, at: new Date(runtime.clock.now()) });
        await Deno.rename(unfinished, path(fileId));
        usage.changed(shardOf(fileId), written.size);
        await syncFolder(folderOf(fileId));
        return { fileId, ...written };
      } catch (error) {
        expected.delete(fileId);
        await content.cancel(error).catch(() => {});
        await unlessMissing(Deno.remove(unfinished));
        throw storageError(error);
      }
    },

    path,

    async read(fileId, part) {
      await mustExist(path(fileId));
      return streamOf(path(fileId), part);
    },

    async onDisk(fileId) {
      await mustExist(path(fileId));
      return { path: path(fileId), [Symbol.asyncDispose]: () => Promise.resolve() };
    },

    async head(fileId, length) {
      using file = await Deno.open(path(fileId));
      const bytes = new Uint8Array(length);
      return bytes.subarray(0, await file.read(bytes) ?? 0);
    },

    async remove(fileId) {
      const stored = await unlessMissing(Deno.stat(path(fileId)));
      await unlessMissing(Deno.remove(path(fileId)));
      if (stored) usage.changed(shardOf(fileId), -stored.size);
      expected.delete(fileId);
    },

    async *folders() {
      for await (const { name: shard, isDirectory } of Deno.readDir(folder)) {
        if (!isDirectory) continue;
        const counted = usage.count(shard);
        const found = await filesIn(join(folder, shard));
        counted(found.reduce((sum, { fileId, size }) => fileId === null ? sum : sum + size, 0));
        yield found;
      }
    },

    bytes: () => usage.bytes,

    isExpected: (fileId) => expected.has(fileId),

    seen: (fileId) => void expected.delete(fileId),
  };
}

async function makeFolder(path: string): Promise<void> {
  await Deno.mkdir(path, { recursive: true, mode: 0o700 });
  await giveToOwner(path);
}

async function filesIn(folder: string): Promise<FileOnDisk[]> {
  const found: FileOnDisk[] = [];
  for await (const { name } of Deno.readDir(folder)) {
    const path = join(folder, name);
    const info = await unlessMissing(Deno.stat(path));
    const fileId = name.endsWith(UNFINISHED) ? null : name;
    if (info) found.push({ fileId, path, size: info.size, modifiedAt: info.mtime?.getTime() ?? 0 });
  }
  return found;
}

async function writeFile(
  path: string,
  content: ReadableStream<Uint8Array>,
  { maxBytes, at }: { maxBytes: number; at: Date },
): Promise<Omit<StoredFile, "fileId">> {
  const { chunks, result } = measured(content, maxBytes);
  using file = await Deno.open(path, { createNew: true, write: true, mode: 0o600 });
  for await (const chunk of chunks) {
    await writeAll(file, chunk);
  }
  await file.utime(at, at);
  await giveToOwner(path);
  await file.sync();
  return result();
}

/** Maps a full disk to the store's "full"; errors of the content's stream are returned as they are. */
function storageError(error: unknown): unknown {
  if (!isDiskFull(error)) return error;
  return new StoreError("full", "there is no space left for files", { cause: error });
}

/** The total size of all files: counted per folder on each walk, and updated in between. */
class DiskUsage {
  /** Each change replaces the object, so that a concurrent count can detect it. */
  readonly #folders = new Map<string, { bytes: number }>();

  /** Total size. A folder not walked yet contributes only what was added since the start, so this is never too high. */
  get bytes(): number {
    let sum = 0;
    for (const { bytes } of this.#folders.values()) sum += bytes;
    return sum;
  }

  /** Records that bytes were added to the folder or, if negative, removed. */
  changed(folder: string, bytes: number): void {
    const before = this.#folders.get(folder)?.bytes ?? 0;
    this.#folders.set(folder, { bytes: Math.max(0, before + bytes) });
  }

  /** Begins a count; the returned function records the result, unless the folder has changed in the meantime. */
  count(folder: string): (bytes: number) => void {
    const before = this.#folders.get(folder);
    return (bytes) => {
      if (this.#folders.get(folder) === before) this.#folders.set(folder, { bytes });
    };
  }
}

const CHUNK_BYTES = 64 * 1024;

/** Throws Problem not_found if there is no such file. */
async function mustExist(path: string): Promise<void> {
  if (!await exists(path)) throw notFound("file");
}

/** Opens the file on the first read, so that a response that is never read holds no file open. */
function streamOf(
  path: string,
  { start, length }: { start: number; length: number },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let file: Deno.FsFile | null = null;
  let left = length;
  let ended = false;
  const end = () => {
    ended = true;
    file?.close();
    file = null;
  };
  return new ReadableStream({
    async pull(controller) {
      try {
        if (file === null) {
          const opened = await openAt(path, start);
          // If the client has gone in the meantime, nothing else closes the file.
          if (ended) return opened.close();
          file = opened;
        }
        const chunk = new Uint8Array(Math.min(CHUNK_BYTES, left));
        const read = left === 0 ? null : await file.read(chunk);
        if (ended) return;
        if (read !== null) {
          left -= read;
          return controller.enqueue(chunk.subarray(0, read));
        }
        // The file is shorter than its record: the response must not appear complete.
        if (left > 0) throw new Error("the file on disk is shorter than its record");
        end();
        controller.close();
      } catch (error) {
        end();
        throw error;
      }
    },
    cancel: end,
  }, { highWaterMark: 0 });
}

async function openAt(path: string, start: number): Promise<Deno.FsFile> {
  const file = await Deno.open(path, { read: true });
  try {
    if (start > 0) await file.seek(start, Deno.SeekMode.Start);
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}
