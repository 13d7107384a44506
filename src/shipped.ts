/** Files that are shipped with the code and read at run time. */
import { join } from "node:path";

/** The repository's root, or its embedded counterpart: the executable's bundle is one folder deep, as this file is. */
const ROOT = join(import.meta.dirname!, "..");

/**
 * Returns the URL of a file or folder, given its path in the repository. `scripts/compile.ts` lists what is shipped.
 */
export function shipped(path: string): string {
  return join(ROOT, path);
}
