/** Files that go with the code and are read at run time. */
import { join } from "node:path";

/** The repository, or what the executable carries of it: its bundle lies one folder deep, as this file does. */
const ROOT = join(import.meta.dirname!, "..");

/** Where the file or folder is, given as it lies in the repository. `scripts/compile.ts` lists what is shipped. */
export function shipped(path: string): string {
  return join(ROOT, path);
}
