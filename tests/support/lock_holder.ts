/** Holds a data folder as a gateway does, says so on stdout, and waits to be killed. */
import { lockGateway } from "../../src/data/data_folder.ts";
import { denoKvFiles } from "../../src/store/deno_kv/file_engine.ts";

const [folder] = Deno.args;
if (folder === undefined) throw new Error("usage: lock_holder.ts FOLDER");
await lockGateway(folder, denoKvFiles);
console.log("locked");
await new Promise(() => setInterval(() => {}, 1_000));
