/** The work of each sweep. `maintenance.ts` loads it when the first of them runs. */
import { sweepAnswers } from "../account/idempotency.ts";
import { makeChatIndex } from "../chat/chat_index.ts";
import { makeSweepChats } from "../chat/sweep.ts";
import { makeSweepCalls } from "../cluster/calls.ts";
import { erasePeople } from "../erasure/erase.ts";
import type { EventLog } from "../event/event_log.ts";
import type { LoggedEvent } from "../event/event.ts";
import { sweepEvents, sweepSurplus } from "../event/sweep.ts";
import { backfillChats } from "../line/chat_backfill.ts";
import { sweepAsked } from "../line/answers.ts";
import { forgetReceived } from "../line/chat_entries.ts";
import { makeSweepKnown, sweepHeard } from "../line/chats.ts";
import { makeSessionNames } from "../line/line_row.ts";
import { finishBulks, makeSweepStaged } from "../message/bulk.ts";
import { settleAllRefunds } from "../message/history/counts.ts";
import { indexHistories } from "../message/history/filter_index.ts";
import { sweepHistory } from "../message/history/retention.ts";
import { sweepTemplateVersions } from "../message/templates/templates.ts";
import { makeSweepSeen } from "../line/seen.ts";
import { removeAccounts } from "../erasure/account_removal.ts";
import type { DiskMediaStore } from "../media/disk_store.ts";
import type { MediaStore } from "../media/store.ts";
import type { DiskShares } from "../media/fair_shares.ts";
import { sweepMedia } from "../media/sweep.ts";
import type { Runtime } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import type { Kv } from "../store/kv.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";
import { releaseEvents, sweepDeliveries } from "../webhook/sweep.ts";
import type { Recorder } from "../message/record.ts";
import { sweepVerifications } from "../verification/ends.ts";
import type { Network } from "../whatsapp/network.ts";

const DAY_MS = 24 * 60 * 60_000;

/** The media store, including files that a crash left behind. */
export interface SweptMedia extends Pick<MediaStore, "remove">, Partial<Pick<DiskMediaStore, "bytes">> {
  /** Removes orphaned files and, through the given store, their rows; resolves to the number of files. */
  sweepOrphans(kv: Kv, signal: AbortSignal): Promise<number>;
}

interface SweepContext {
  kv: Kv;
  sweepChunks: ChunkedKv["sweepChunks"];
  runtime: Runtime;
  bell: Bell;
  media: SweptMedia;
  shares: DiskShares;
  /** Limit for the files on disk, in bytes. */
  mediaBytes: number;
  network: Pick<Network, "sweep" | "lidOf" | "numberOf" | "erase" | "eraseKeys" | "eraseSent" | "eraseReceived">;
  recorder: Pick<Recorder, "cancel" | "drop">;
  removeAbove(accountId: string): Promise<void>;
  events: EventLog;
  /** Days for which events are kept. */
  eventDays: number;
  /** Most bytes of an account's events, with what is kept beside them. */
  eventBytes: number;
  /** Days for which messages are kept. */
  historyDays: number;
}

export type SweepWork = ReturnType<typeof sweepWork>;

/** The sweeps go by the confirmed time. */
export function sweepWork(options: SweepContext) {
  const { kv, network, events, eventDays, eventBytes, historyDays } = options;
  const now = () => options.runtime.confirmed.now();
  const { clock } = options.runtime;
  const runtime = {
    ...options.runtime,
    clock: { now, after: (delayMs: number, run: () => void) => clock.after(delayMs, run) },
  };
  const context = { ...options, runtime };
  const chats = makeChatIndex({ kv, network });
  const release = (accountId: string, events: readonly LoggedEvent[]) =>
    releaseEvents({ kv, runtime }, accountId, events);
  const sweepSeen = makeSweepSeen(kv);
  const sweepChats = makeSweepChats(kv);
  const sweepKnown = makeSweepKnown(kv, network);
  return {
    "removed accounts": (signal) => removeAccounts(context, signal),
    "erased people": (signal) => erasePeople(context, signal),
    "idempotency answers": () => sweepAnswers(kv, now()),
    "seen messages": (signal) => sweepSeen(now(), signal),
    "chats that wrote": (signal) => sweepHeard(kv, now(), signal),
    "chats that are silent": (signal) => sweepKnown(now(), signal),
    "chats that are over": (signal) => sweepChats(now() - historyDays * DAY_MS, signal),
    "chats of older data": (signal) => backfillChats({ ...context, chats }, signal),
    "choices without an answer": (signal) => sweepAsked(kv, now(), signal),
    "replaced templates": (signal) => sweepTemplateVersions(kv, { now: now(), keepMs: historyDays * DAY_MS, signal }),
    "verifications": (signal) =>
      sweepVerifications({ kv, events, sessionName: makeSessionNames(kv, runtime.clock).of }, now(), signal),
    "bulks": () => finishBulks({ kv, events, sessionName: makeSessionNames(kv, runtime.clock).of }),
    "quota of cancelled messages": () => settleAllRefunds(kv),
    "history filters": (signal) => indexHistories(kv, signal),
    "history": (signal) => sweepHistory({ kv, runtime }, { keepMs: historyDays * DAY_MS, signal }),
    "bulks that were never accepted": makeSweepStaged(kv),
    "questions between processes": makeSweepCalls(kv),
    "network rows": () => network.sweep(),
    "events": (signal) => sweepEvents(kv, runtime, { signal, keepMs: eventDays * DAY_MS, release }),
    "events without room": (signal) =>
      sweepSurplus(kv, runtime, {
        signal,
        keepBytes: eventBytes,
        release,
        forget: (events) => forgetReceived({ kv, chats, network }, events),
      }),
    "deliveries": (signal) => sweepDeliveries(context, signal),
    "received files": async (signal) => {
      const { expired, overCap } = await sweepMedia(context, { signal, capBytes: context.mediaBytes });
      return expired + overCap;
    },
    "chunks of replaced values": context.sweepChunks,
    "orphaned files": (signal) => context.media.sweepOrphans(kv, signal),
  } satisfies Record<string, (signal: AbortSignal) => Promise<number>>;
}
