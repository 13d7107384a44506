/** All sweeps: what each removes, and how often it runs. */
import { sweepAnswers } from "../account/idempotency.ts";
import { sweepCalls } from "../cluster/calls.ts";
import { erasePeople } from "../erasure/erase.ts";
import { ERASURE_TOPIC } from "../erasure/erasures.ts";
import type { EventLog } from "../event/log.ts";
import { sweepEvents } from "../event/sweep.ts";
import { makeSweepKnown, sweepHeard } from "../line/chats.ts";
import { makeSessionNames } from "../line/line_row.ts";
import { makeSweepStaged } from "../message/staged_bulk.ts";
import { finishBulks } from "../message/bulk.ts";
import { settleAllRefunds } from "../message/refund.ts";
import { indexHistories } from "../message/history/filter_index.ts";
import { sweepHistory } from "../message/history/retention.ts";
import { makeSweepSeen } from "../line/seen.ts";
import { removeAccounts } from "./account_removal.ts";
import type { Sweep } from "./maintenance.ts";
import type { DiskMediaStore } from "../media/disk.ts";
import type { MediaStore } from "../media/store.ts";
import type { DiskShares } from "../media/shares.ts";
import { sweepMedia } from "../media/sweep.ts";
import type { Runtime } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import type { Changes } from "../store/changes.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";
import { releaseEvents, sweepDeliveries } from "../webhook/sweep.ts";
import type { Recorder } from "../message/record.ts";
import type { Network } from "../whatsapp/network.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The files, and what of them a crash left behind. */
export interface SweptMedia extends Pick<MediaStore, "remove">, Partial<Pick<DiskMediaStore, "bytes">> {
  /** Resolves to how many are gone. */
  sweepOrphans(signal: AbortSignal): Promise<number>;
}

interface SweepContext {
  kv: ChunkedKv;
  runtime: Runtime;
  bell: Bell;
  changes: Changes;
  media: SweptMedia;
  shares: DiskShares;
  /** What the files may take on disk. */
  mediaBytes: number;
  network: Pick<Network, "sweep" | "lidOf" | "numberOf" | "erase" | "eraseKeys" | "eraseSent">;
  recorder: Pick<Recorder, "cancelled" | "dropped">;
  queueChanged(lineId: string): void;
  removeAbove(accountId: string): Promise<void>;
  events: EventLog;
  /** How many days events are kept. */
  eventDays: number;
  /** And messages. */
  historyDays: number;
}

export function sweeps(context: SweepContext): Sweep[] {
  const { kv, runtime, bell, changes, network, events, eventDays, historyDays } = context;
  const now = () => runtime.clock.now();
  const sweepSeen = makeSweepSeen(kv);
  const sweepKnown = makeSweepKnown(kv, network);
  const sweepStaged = makeSweepStaged(kv);
  return [
    {
      name: "removed accounts",
      everyMs: MINUTE_MS,
      // A command asked for it, and waits.
      wakenBy: changes.hear,
      run: (signal) => removeAccounts(context, signal),
    },
    {
      name: "erased people",
      everyMs: MINUTE_MS,
      wakenBy: (wake) => bell.hear(ERASURE_TOPIC, wake),
      run: (signal) => erasePeople(context, signal),
    },
    { name: "idempotency answers", everyMs: HOUR_MS, run: () => sweepAnswers(kv, now()) },
    { name: "seen messages", everyMs: MINUTE_MS, run: (signal) => sweepSeen(now(), signal) },
    { name: "chats that wrote", everyMs: HOUR_MS, run: (signal) => sweepHeard(kv, now(), signal) },
    { name: "chats that are silent", everyMs: MINUTE_MS, run: (signal) => sweepKnown(now(), signal) },
    {
      name: "bulks",
      everyMs: MINUTE_MS,
      run: () => finishBulks({ kv, events, sessionName: makeSessionNames(kv, runtime.clock).of }),
    },
    { name: "quota of cancelled messages", everyMs: MINUTE_MS, run: () => settleAllRefunds(kv) },
    { name: "history filters", everyMs: MINUTE_MS, run: (signal) => indexHistories(kv, signal) },
    {
      name: "history",
      everyMs: MINUTE_MS,
      run: (signal) => sweepHistory({ kv, runtime }, { keepMs: historyDays * DAY_MS, signal }),
    },
    { name: "bulks that were never accepted", everyMs: 10 * MINUTE_MS, run: sweepStaged },
    { name: "questions between processes", everyMs: MINUTE_MS, run: () => sweepCalls(kv, now()) },
    { name: "network rows", everyMs: HOUR_MS, run: () => network.sweep() },
    {
      name: "events",
      everyMs: 10 * MINUTE_MS,
      run: (signal) =>
        sweepEvents(kv, runtime, {
          signal,
          keepMs: eventDays * DAY_MS,
          release: (accountId, events) => releaseEvents({ kv, runtime }, accountId, events),
        }),
    },
    { name: "deliveries", everyMs: HOUR_MS, run: (signal) => sweepDeliveries(context, signal) },
    {
      name: "received files",
      everyMs: MINUTE_MS,
      run: async (signal) => {
        const { expired, overCap } = await sweepMedia(context, { signal, capBytes: context.mediaBytes });
        return expired + overCap;
      },
    },
    { name: "chunks of replaced values", everyMs: MINUTE_MS, run: (signal) => kv.sweepChunks(signal) },
    { name: "orphaned files", everyMs: HOUR_MS, run: (signal) => context.media.sweepOrphans(signal) },
  ];
}
