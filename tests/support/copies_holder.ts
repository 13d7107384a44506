/** Holds a copy of somebody's data in a folder of its own, says where on stdout, and waits to be killed. */
import { join } from "node:path";
import { makeCopyFolder } from "../../src/data/copies.ts";
import { denoKvFiles } from "../../src/store/deno_kv/file_engine.ts";

const { path } = await makeCopyFolder(denoKvFiles);
await Deno.writeTextFile(join(path, "copy"), "a customer's text");
console.log(path);
await new Promise((resolve) => setTimeout(resolve, 600_000));
