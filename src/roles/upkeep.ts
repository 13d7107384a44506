/** The parts of the sweeps. `worker.ts` loads them when the first sweep runs. */
import { type SweepWork, sweepWork } from "../ops/sweep_work.ts";
import { removePanelRows } from "../panel/sweep.ts";
import type { Ground } from "./ground.ts";
import { recorderOn } from "./recording.ts";
import type { SessionsOptions } from "./sessions.ts";

export function upkeepWork(ground: Ground, { network, queueChanged }: SessionsOptions): SweepWork {
  const { kv, runtime, bell, media, diskShares, events, config } = ground;
  return sweepWork({
    kv,
    runtime,
    bell,
    media,
    shares: diskShares,
    mediaBytes: config.mediaDisk,
    events,
    eventDays: config.eventDays,
    historyDays: config.historyDays,
    network,
    recorder: recorderOn(ground, kv),
    queueChanged,
    removeAbove: (accountId) => removePanelRows(kv, accountId),
  });
}
