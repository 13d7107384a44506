/** Files: what the runtime leaves to whoever reads and writes them. */
import { dirname } from "node:path";

/** The result of a file operation, or null when the file or folder does not exist. */
export async function unlessMissing<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Whether there is a file or folder at the path. */
export async function exists(path: string): Promise<boolean> {
  return await unlessMissing(Deno.stat(path)) !== null;
}

/** Writes all of the bytes: a single write may take a part of them alone. */
export async function writeAll(
  target: { write(bytes: Uint8Array): Promise<number> },
  bytes: Uint8Array,
): Promise<void> {
  for (let done = 0; done < bytes.length;) done += await target.write(bytes.subarray(done));
}

/** Puts the folder's entries on disk, without which a new name is not safe from a power cut; Windows has no such thing. */
export async function syncFolder(path: string): Promise<void> {
  if (Deno.build.os === "windows") return;
  using folder = await Deno.open(path);
  await folder.sync();
}

/** Gives what root has made in another user's folder to that user: a service that runs as that user could not read it. */
export async function giveToOwner(path: string): Promise<void> {
  if (Deno.build.os === "windows" || Deno.uid() !== 0) return;
  const { uid, gid } = await Deno.stat(dirname(path));
  await Deno.chown(path, uid, gid);
}

/** Runs with a temporary folder that this user alone may read, and which is removed afterwards with what is in it. */
export async function throughTempFolder<T>(run: (path: string) => Promise<T>): Promise<T> {
  const folder = await Deno.makeTempDir({ prefix: "paloma-" });
  try {
    return await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
