/** What a gateway keeps of files: in its folder for them, or in the bucket under the tests. */
import { join } from "node:path";
import { openData } from "../../src/engines.ts";
import { type BucketConfig, readConfig } from "../../src/config.ts";
import { openBucket } from "../../src/media/s3.ts";
import { mediaKeys } from "../../src/media/rows.ts";
import type { Environment } from "./gateway_process.ts";
import { silentRuntime } from "./runtime.ts";
import { dataConfigOf, onTestStore } from "./test_store.ts";
import { until } from "./until.ts";

/** Waits until no file is left: each goes when its message has ended, or when it turned out to be nobody's. */
export async function noFileLeft({ dataDir, env }: { dataDir: string; env: Environment }): Promise<void> {
  const { media } = readConfig(onTestStore(env));
  const folder = join(dataDir, "media");
  const left = () => media === null ? filesUnder(folder) : objectsIn(media, env);
  await until(async () => (await left()).length === 0, `the files in ${media?.bucket ?? folder} to go`);
}

async function filesUnder(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    found.push(...(isDirectory ? await filesUnder(path) : [path]));
  }
  return found;
}

/** Resolves to the gateway's objects in the bucket, of which each has had a row before it was written. */
async function objectsIn(media: BucketConfig, env: Environment): Promise<string[]> {
  const data = await openData(dataConfigOf(env), silentRuntime());
  try {
    const bucket = openBucket(media, silentRuntime());
    const found: string[] = [];
    let written = 0;
    for await (const { key } of data.kv.list({ prefix: mediaKeys.objects() })) {
      const name = String(key.at(-1));
      const content = await bucket.get(name);
      await content?.cancel();
      if (content) found.push(name);
      written++;
    }
    if (written === 0) throw new Error("no file was ever in the bucket");
    return found;
  } finally {
    data.close();
  }
}
