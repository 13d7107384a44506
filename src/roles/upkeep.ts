/** The parts of the sweeps. `worker.ts` loads them when the first sweep runs. */
import { type SweepWork, sweepWork } from "../ops/sweep_work.ts";
import { removePanelRows } from "../panel/sweep.ts";
import type { Kv } from "../store/kv.ts";
import type { Ground } from "./ground.ts";
import { recorderOn } from "./recording.ts";
import type { Network } from "../whatsapp/network.ts";

/** `kv`: the store through which the sweeps write. */
export function upkeepWork(ground: Ground, { kv, network }: { kv: Kv; network: Network }): SweepWork {
  const { runtime, bell, media, diskShares, events, config, queueChanged } = ground;
  return sweepWork({
    kv,
    sweepChunks: ground.kv.sweepChunks,
    runtime,
    bell,
    media,
    shares: diskShares,
    mediaBytes: config.mediaDisk,
    events,
    eventDays: config.eventDays,
    eventBytes: config.eventBytes,
    historyDays: config.historyDays,
    network,
    recorder: recorderOn(ground, { kv, network }),
    queueChanged,
    removeAbove: (accountId) => removePanelRows(kv, accountId),
  });
}
