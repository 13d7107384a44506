/**
 * What works on messages beside the API: the recorder of their outcomes, opt-outs, line sessions and sweeps. Loaded with
 * the first of them that is needed.
 */
import { makeChatIndex } from "../chat/chat_index.ts";
import { lineIdsOf } from "../line/account_lines.ts";
import { makeOptOuts, type OptOuts } from "../message/opt_outs.ts";
import { Recorder } from "../message/record.ts";
import { measuredMoves } from "../ops/metrics.ts";
import type { Kv } from "../store/kv.ts";
import type { Network } from "../whatsapp/network.ts";
import type { Context } from "./context.ts";
import { DEFAULT_PLANS } from "../account/plan.ts";
import type { MakeSession } from "../line/supervisor.ts";
import { makeMediaIngest } from "../media/ingest.ts";
import { makeFetchAttachment } from "../message/fetch_attachment.ts";
import { makeFetchPreview } from "../message/link_preview.ts";
import type { SweepWork } from "../ops/sweep_work.ts";
import { removePanelRows } from "../panel/sweep.ts";

/** Returns a recorder that writes through the given store. */
export function recorderOn(
  context: Context,
  { kv, network }: { kv: Kv; network: Pick<Network, "lidOf" | "numberOf"> },
): Recorder {
  return new Recorder({
    ...context,
    kv,
    chats: makeChatIndex({ kv, network }),
    sessionName: context.names.of,
    files: context.media,
    recorded: measuredMoves(context.metrics, context.runtime.clock),
  });
}

export function optOutsOn(context: Context, network: Pick<Network, "lidOf" | "numberOf">): OptOuts {
  const { kv, runtime, data: { callers } } = context;
  return makeOptOuts({
    ...context,
    clock: runtime.clock,
    recorder: recorderOn(context, { kv, network }),
    linesOf: (accountId) => lineIdsOf(kv, accountId),
    chats: makeChatIndex({ kv, network }),
    wordsOf: async (accountId) => (await callers.of(accountId))?.account.optOutWords ?? [],
  });
}

export async function makeSessions(context: Context, network: Network): Promise<MakeSession> {
  const { LineSession } = await import("../line/line_session.ts");
  const { runtime, media: files, data: { callers, seal } } = context;
  const shared = {
    ...context,
    files,
    fetchPreview: makeFetchPreview({ ...context, clock: runtime.clock }),
    sessionName: context.names.of,
    plan: async (accountId: string) => (await callers.of(accountId))?.plan ?? DEFAULT_PLANS[0]!,
    optOuts: optOutsOn(context, network),
    media: makeMediaIngest(context),
    seal,
    network,
  };
  return (kv, line, changed) => {
    const recorder = recorderOn(context, { kv, network });
    const fetchAttachment = makeFetchAttachment({ ...context, kv, files, recorder });
    return new LineSession(
      { ...shared, kv, chats: makeChatIndex({ kv, network }), recorder, fetchAttachment },
      line,
      changed,
    );
  };
}

/** `kv`: the store through which the sweeps write. */
export async function upkeepWork(
  context: Context,
  { kv, network }: { kv: Kv; network: Network },
): Promise<SweepWork> {
  const { sweepWork } = await import("../ops/sweep_work.ts");
  const { config: { mediaDisk, eventDays, eventBytes, historyDays } } = context;
  return sweepWork({
    ...context,
    kv,
    sweepChunks: context.kv.sweepChunks,
    shares: context.diskShares,
    mediaBytes: mediaDisk,
    eventDays,
    eventBytes,
    historyDays,
    network,
    recorder: recorderOn(context, { kv, network }),
    removeAbove: (accountId) => removePanelRows(kv, accountId),
  });
}
