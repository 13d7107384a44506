/**
 * The engine of the network is most of what a process loads: some 60 MB, and half of its start. A gateway whose lines are
 * yet to be made does without; it is loaded when the first line asks for it.
 */
import { onDemand } from "../base/single_flight.ts";
import type { Network } from "./network.ts";

/** The network that `load` gives, once, when something first needs it; a load that fails is tried again at the next need. */
export function networkOnDemand(load: () => Promise<Network>): Network {
  const engine = onDemand(load);

  return {
    open: async (options, events) => await (await engine.need()).open(options, events),
    isLinked: async (lineId) => await (await engine.need()).isLinked(lineId),
    forget: async (lineId, receive) => await (await engine.need()).forget(lineId, receive),
    recall: async (lineId, networkId) => await (await engine.need()).recall(lineId, networkId),
    numberOf: async (lineId, lid) => await (await engine.need()).numberOf(lineId, lid),
    lidOf: async (lineId, number) => await (await engine.need()).lidOf(lineId, number),
    erase: async (lineId, traces, at) => await (await engine.need()).erase(lineId, traces, at),
    eraseKeys: async (lineId, traces) => await (await engine.need()).eraseKeys(lineId, traces),
    eraseSent: async (lineId, networkIds) => await (await engine.need()).eraseSent(lineId, networkIds),
    webVersion: () => engine.made()?.webVersion() ?? null,
    // What it would drop waits for the first line.
    sweep: async () => await engine.made()?.sweep() ?? 0,
  };
}
