/** The parts of the sweeps. `worker.ts` loads them when the first sweep runs. */
import { type SweepWork, sweepWork } from "../ops/sweep_work.ts";
import { removePanelRows } from "../panel/sweep.ts";
import type { Kv } from "../store/kv.ts";
import type { Ground } from "./ground.ts";
import { recorderOn } from "./recording.ts";
import type { SessionsOptions } from "./sessions.ts";

export interface UpkeepOptions extends SessionsOptions {
  /** The store through which the sweeps write. */
  kv: Kv;
}

export function upkeepWork(ground: Ground, { kv, network, queueChanged }: UpkeepOptions): SweepWork {
  const { runtime, bell, media, diskShares, events, config } = ground;
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
