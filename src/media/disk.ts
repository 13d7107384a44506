/** The media store on disk: `<folder>/<last two characters of the id>/<id>`, readable by the owner only. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { Problem } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import { StoreError } from "../store/kv.ts";
import type { MediaStore } from "./store.ts";

/** A media store that can also say what lies in it, for the sweep. */
export interface DiskMediaStore extends MediaStore {
  /** Every file, finished or not: its id (null for the rest of an interrupted write), its path, when it was written. */
  files(): AsyncIterable<{ fileId: string | null; path: string; modifiedAt: number }>;
  /** Whether this process wrote the file and has not seen its row yet: a commit that names it may be on its way. */
  isExpected(fileId: string): boolean;
  /** The row of the file has been seen. */
  seen(fileId: string): void;
}

/** While it is being written. */
const UNFINISHED = ".part";

/** Opens (and makes) the store in `folder`. */
export async function openDiskMediaStore(folder: string, runtime: Runtime): Promise<DiskMediaStore> {
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  const expected = new Set<string>();
  const folderOf = (fileId: string) => join(folder, fileId.slice(-2));
  const path = (fileId: string) => join(folderOf(fileId), fileId);

  return {
    async write(content, maxBytes) {
      const id = runtime.ids.next("med");
      const unfinished = path(id) + UNFINISHED;
      expected.add(id);
      try {
        await Deno.mkdir(folderOf(id), { recursive: true, mode: 0o700 });
        const written = await writeFile(unfinished, content, { maxBytes, at: new Date(runtime.clock.now()) });
        await Deno.rename(unfinished, path(id));
        await syncFolder(folderOf(id));
        return { id, ...written };
      } catch (error) {
        expected.delete(id);
        await content.cancel(error).catch(() => {});
        await removeFile(unfinished);
        throw storageError(error);
      }
    },

    path,

    async remove(fileId) {
      await removeFile(path(fileId));
      expected.delete(fileId);
    },

    async *files() {
      for await (const shard of Deno.readDir(folder)) {
        if (!shard.isDirectory) continue;
        for await (const { name } of Deno.readDir(join(folder, shard.name))) {
          const full = join(folder, shard.name, name);
          const fileId = name.endsWith(UNFINISHED) ? null : name;
          const info = await Deno.stat(full).catch(() => null);
          if (info) yield { fileId, path: full, modifiedAt: info.mtime?.getTime() ?? 0 };
        }
      }
    },

    isExpected: (fileId) => expected.has(fileId),

    seen: (fileId) => void expected.delete(fileId),
  };
}

async function writeFile(
  path: string,
  content: ReadableStream<Uint8Array>,
  { maxBytes, at }: { maxBytes: number; at: Date },
): Promise<{ size: number; sha256: string }> {
  const hash = createHash("sha256");
  let size = 0;
  using file = await Deno.open(path, { createNew: true, write: true, mode: 0o600 });
  for await (const chunk of content) {
    size += chunk.length;
    if (size > maxBytes) throw new Problem("payload_too_large", `The file is larger than ${maxBytes} bytes.`);
    hash.update(chunk);
    for (let done = 0; done < chunk.length;) done += await file.write(chunk.subarray(done));
  }
  await file.utime(at, at);
  await file.sync();
  return { size, sha256: hash.digest("hex") };
}

/** A new name is safe from a power cut only when its folder is on disk too. */
async function syncFolder(folder: string): Promise<void> {
  if (Deno.build.os === "windows") return;
  using handle = await Deno.open(folder);
  await handle.sync();
}

async function removeFile(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** ENOSPC and EDQUOT are the store's "full"; whatever the content's stream threw goes on as it is. */
function storageError(error: unknown): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  if (code !== "ENOSPC" && code !== "EDQUOT") return error;
  return new StoreError("full", "there is no space left for files", { cause: error });
}
