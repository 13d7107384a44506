/** A small file system of its own, to be filled. */

/** Runs with a tmpfs of that size mounted; resolves to null where none could be mounted: that takes root. */
export async function onSmallDisk<T>(megabytes: number, run: (folder: string) => Promise<T>): Promise<T | null> {
  const folder = await Deno.makeTempDir({ prefix: "paloma-full-" });
  try {
    if (!await command("mount", "-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder)) return null;
    try {
      return await run(folder);
    } finally {
      await command("umount", folder);
    }
  } finally {
    await Deno.remove(folder);
  }
}

async function command(name: string, ...args: string[]): Promise<boolean> {
  const { success } = await new Deno.Command(name, { args, stdout: "null", stderr: "null" }).output();
  return success;
}
