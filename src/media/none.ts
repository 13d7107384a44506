/** For processes that share no place for files: what needs one is refused, everything else works. */
import { Problem } from "../errors.ts";
import type { MediaStore } from "./store.ts";

export function noMediaStore(): MediaStore & { sweepOrphans(): Promise<number> } {
  const refused = () =>
    Promise.reject(new Problem("storage_unavailable", "There is no place for files here: PALOMA_MEDIA is not set."));
  return {
    async write(content) {
      await content.cancel();
      return await refused();
    },
    head: refused,
    read: refused,
    onDisk: refused,
    remove: () => Promise.resolve(),
    sweepOrphans: () => Promise.resolve(0),
  };
}
