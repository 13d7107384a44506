/** The store's contract on every engine. */
import { withChunks } from "../../src/store/layers/chunk.ts";
import { denoKvEngine, openDenoKv, openNative } from "../../src/store/deno_kv/deno_kv.ts";
import { kvContract } from "./kv_contract.ts";

kvContract({
  name: "Deno KV on one connection",
  async open(path, runtime) {
    const native = await openNative(path, { runtime });
    return withChunks(denoKvEngine({ writes: native, reads: native }, { runtime }), { runtime });
  },
});

kvContract({
  name: "Deno KV with group commit",
  open: (path, runtime) => openDenoKv(path, { runtime }),
});
