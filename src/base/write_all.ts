/** Writing that leaves nothing out: a single write may take a part of the bytes alone. */

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
