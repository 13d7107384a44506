/**
 * The engine of the network is most of what a process loads: some 60 MB, and half of its start. A gateway whose lines are
 * yet to be made does without; it is loaded when the first line asks for it.
 */
import type { Network } from "./network.ts";

/** The network that `load` gives, once, when something first needs it; a load that fails is tried again at the next need. */
export function networkOnDemand(load: () => Promise<Network>): Network {
  let loading: Promise<Network> | null = null;
  let loaded: Network | null = null;

  function network(): Promise<Network> {
    if (loading === null) {
      loading = load();
      loading.then((network) => loaded = network, () => loading = null);
    }
    return loading;
  }

  return {
    open: async (options, events) => await (await network()).open(options, events),
    isLinked: async (lineId) => await (await network()).isLinked(lineId),
    forget: async (lineId) => await (await network()).forget(lineId),
    recall: async (lineId, networkId) => await (await network()).recall(lineId, networkId),
    numberOf: async (lineId, lid) => await (await network()).numberOf(lineId, lid),
    lidOf: async (lineId, number) => await (await network()).lidOf(lineId, number),
    erase: async (lineId, traces, at) => await (await network()).erase(lineId, traces, at),
    eraseSent: async (lineId, networkIds) => await (await network()).eraseSent(lineId, networkIds),
    webVersion: () => loaded?.webVersion() ?? null,
    // What it would drop waits for the first line.
    sweep: async () => await loaded?.sweep() ?? 0,
  };
}
