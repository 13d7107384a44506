/** The simulated network as a process of a bench, so that neither side of a comparison pays for it. */
import { makeLog } from "../../src/ops/log.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { startNetwork } from "../../src/sandbox/network.ts";
import { type Child, runAsChild, startChild } from "./child.ts";

export interface NetworkReady {
  url: string;
  rootKey: string;
  mediaUrl: string;
  caPem: string;
  controlUrl: string;
}

/** What a bench has for itself: a folder, and a simulated network. Both go when it ends. */
export interface Site extends AsyncDisposable {
  readonly root: string;
  readonly network: Child<NetworkReady>;
}

export async function openSite(): Promise<Site> {
  const root = await Deno.makeTempDir({ prefix: "paloma-bench-" });
  const network = await startChild<NetworkReady>("./network.ts", null);
  return {
    root,
    network,
    async [Symbol.asyncDispose]() {
      await network.stop();
      await Deno.remove(root, { recursive: true });
    },
  };
}

if (import.meta.main) {
  await runAsChild(async () => {
    const network = await startNetwork({ runtime: systemRuntime(makeLog("silent")) });
    const { url, rootKey, mediaUrl, caPem, controlUrl } = network;
    const ready: NetworkReady = { url, rootKey, mediaUrl, caPem, controlUrl };
    return { ready, stop: () => network.close() };
  });
}
