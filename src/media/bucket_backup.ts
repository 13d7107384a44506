/** The files of a bucket as a folder, as the media store on disk would have it, and back: for backups. */
import { basename, join } from "node:path";
import type { FilesElsewhere } from "../data/shared_backup.ts";
import type { Runtime } from "../runtime.ts";
import type { Bucket } from "./bucket.ts";
import { makeBucketMediaStore } from "./bucket_store.ts";
import { openDiskMediaStore } from "./disk.ts";
import { mediaKeys } from "./rows.ts";

export function filesOfBucket(bucket: Bucket, runtime: Runtime): FilesElsewhere {
  return {
    async save(kv, folder) {
      const disk = await openDiskMediaStore(folder, runtime);
      for await (const { value: { id } } of kv.list({ prefix: mediaKeys.files() })) {
        // A file removed meanwhile is no longer needed.
        const content = await bucket.get(id);
        if (content === null) continue;
        await Deno.mkdir(join(disk.path(id), ".."), { recursive: true, mode: 0o700 });
        await Deno.writeFile(disk.path(id), content, { mode: 0o600 });
      }
    },
    async load(kv, folder) {
      const media = makeBucketMediaStore({ bucket, kv, runtime });
      const disk = await openDiskMediaStore(folder, runtime);
      for await (const files of disk.folders()) {
        for (const { path } of files) await media.writeAs(basename(path), (await Deno.open(path)).readable, Infinity);
      }
    },
  };
}
