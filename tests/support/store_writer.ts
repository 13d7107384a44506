/**
 * Writes rows of the given size to the store at the given path, 16 at a time, until it is killed or the store refuses,
 * and says on stdout what was acknowledged: `done N` a row, `failed CODE` at the end, then `readable N` and leaves.
 */
import { Change, type Kv, StoreError } from "../../src/store/kv.ts";
import { denoKvFiles } from "../../src/store/deno_kv/file_engine.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { testRuntime } from "./runtime.ts";

const WRITERS = 16;
const [path, size] = Deno.args;
if (path === undefined || size === undefined) throw new Error("usage: store_writer.ts PATH BYTES");

const say = (line: string) => Deno.stdout.writeSync(new TextEncoder().encode(line + "\n"));
const value = new Uint8Array(Number(size));
let kv: Kv | null = null;
let next = 0;

async function write(kv: Kv): Promise<void> {
  for (;;) {
    const number = next++;
    // A row and a counter, so that half a commit would show.
    await kv.commit(new Change().set(["row", number], { value }).add(["rows"], 1));
    say(`done ${number}`);
  }
}

try {
  const opened = kv = await denoKvFiles.open(path, { runtime: systemRuntime(testRuntime().log) });
  await Promise.all(Array.from({ length: WRITERS }, () => write(opened)));
} catch (error) {
  say(`failed ${error instanceof StoreError ? error.code : String(error)}`);
  let readable = 0;
  if (kv) { for await (const _ of kv.list({ prefix: ["row"] })) readable++; }
  say(`readable ${readable} ${(await kv?.get<bigint>(["rows"]))?.value ?? 0}`);
  Deno.exit(0);
}
