/** File operations that the runtime lacks. */
import { Buffer } from "node:buffer";
import { dirname } from "node:path";
import { errorCode } from "./retry.ts";

/** Resolves to the result of a file operation, or null if the file or folder does not exist, or none can have its name. */
export async function unlessMissing<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || errorCode(error) === "ENAMETOOLONG") return null;
    throw error;
  }
}

/** Whether a file or folder exists at the path. */
export async function exists(path: string): Promise<boolean> {
  return await unlessMissing(Deno.stat(path)) !== null;
}

/** Writes all the bytes: a single write may write only part of them. */
export async function writeAll(
  target: { write(bytes: Uint8Array): Promise<number> },
  bytes: Uint8Array,
): Promise<void> {
  for (let done = 0; done < bytes.length;) done += await target.write(bytes.subarray(done));
}

/** Resolves to `length` bytes, or fewer at the end of the file: a single read may return only part of them. */
export async function readUpTo(file: Deno.FsFile, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let done = 0;
  for (let read; done < length && (read = await file.read(buffer.subarray(done))) !== null;) done += read;
  return buffer.subarray(0, done);
}

/** Flushes the folder's entries, without which a new name may be lost in a power cut. Windows does not support it. */
export async function syncFolder(path: string): Promise<void> {
  if (Deno.build.os === "windows") return;
  using folder = await Deno.open(path);
  await folder.sync();
}

/** Gives a file that root created in another user's folder to that user, whose service could not read it otherwise. */
export async function giveToOwner(path: string): Promise<void> {
  if (Deno.build.os === "windows" || Deno.uid() !== 0) return;
  const { uid, gid } = await Deno.stat(dirname(path));
  await Deno.chown(path, uid, gid);
}

/** Whether the system has refused an operation because the disk, or the user's share of it, is full. */
export function isDiskFull(error: unknown): boolean {
  const code = errorCode(error);
  return code === "ENOSPC" || code === "EDQUOT";
}

/** Removes a file or folder, if it is there, with its contents: when it is disposed of, or else when the process exits. */
export function removedAtExit(path: string): Disposable {
  const remove = () => {
    try {
      Deno.removeSync(path, { recursive: true });
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  };
  addEventListener("unload", remove);
  return {
    [Symbol.dispose]() {
      removeEventListener("unload", remove);
      remove();
    },
  };
}
