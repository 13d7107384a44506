/** What lies in the gateway's folder for files. */
import { join } from "node:path";
import { until } from "./until.ts";

/** Waits until no file is left: each goes when its message has ended, or when it turned out to be nobody's. */
export async function noFileLeft({ dataDir }: { dataDir: string }): Promise<void> {
  const folder = join(dataDir, "media");
  await until(async () => (await filesUnder(folder)).length === 0, `the files in ${folder} to go`);
}

async function filesUnder(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    found.push(...(isDirectory ? await filesUnder(path) : [path]));
  }
  return found;
}
