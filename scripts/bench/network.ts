/** The simulated network as a process of a bench, so that neither side of a comparison pays for it. */
import { makeLog } from "../../src/ops/log.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { startNetwork } from "../../src/sandbox/network.ts";
import { runAsChild } from "./child.ts";

export interface NetworkReady {
  url: string;
  rootKey: string;
  mediaUrl: string;
  caPem: string;
  controlUrl: string;
}

if (import.meta.main) {
  await runAsChild(async () => {
    const network = await startNetwork({ runtime: systemRuntime(makeLog("silent")) });
    const { url, rootKey, mediaUrl, caPem, controlUrl } = network;
    const ready: NetworkReady = { url, rootKey, mediaUrl, caPem, controlUrl };
    return { ready, stop: () => network.close() };
  });
}
