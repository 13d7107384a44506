/** What is shipped with the code: its version, and files that are read at run time. */
import { join } from "node:path";

/** Equal to the version in `deno.json` and to the newest entry of the changelog; a test checks this. */
export const VERSION = "0.1.0";

/** The repository's root, or its embedded counterpart: the executable's bundle is one folder deep, as this file is. */
const ROOT = join(import.meta.dirname!, "..");

/**
 * Returns the URL of a file or folder, given its path in the repository. `scripts/compile.ts` lists what is shipped.
 */
export function shipped(path: string): string {
  return join(ROOT, path);
}
