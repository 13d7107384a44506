/** Programs that the tests need and no package of Debian brings; `.ci/run` builds them into the cache folder. */
import { join } from "node:path";

/** Where the program is, or null. */
export function toolOf(name: string): string | null {
  const home = Deno.env.get("HOME") ?? "";
  const cache = Deno.env.get("XDG_CACHE_HOME") ?? join(home, ".cache");
  const folders = [
    join(cache, "paloma-tools/bin"),
    join(home, ".cargo/bin"),
    join(home, "go/bin"),
    ...(Deno.env.get("PATH") ?? "").split(":"),
  ];
  return folders.map((folder) => join(folder, name)).find(isFile) ?? null;
}

export function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
