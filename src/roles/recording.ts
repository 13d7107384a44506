/** Makes the recorder of messages' outcomes. Needed only by modules that are themselves loaded on demand. */
import { ChatIndex } from "../chat/chat_index.ts";
import { lineIdsOf } from "../line/account_lines.ts";
import { OptOuts } from "../message/opt_outs.ts";
import { Recorder } from "../message/record.ts";
import { measuredMoves } from "../ops/metrics.ts";
import type { Kv } from "../store/kv.ts";
import type { Network } from "../whatsapp/network.ts";
import type { Ground } from "./ground.ts";

/** Returns a recorder that writes through the given store. */
export function recorderOn(
  { events, names, media, runtime, metrics }: Ground,
  { kv, network }: { kv: Kv; network: Pick<Network, "lidOf" | "numberOf"> },
): Recorder {
  return new Recorder({
    kv,
    chats: new ChatIndex({ kv, network }),
    events,
    sessionName: names.of,
    files: media,
    runtime,
    recorded: measuredMoves(metrics, runtime.clock),
  });
}

export function optOutsOn(ground: Ground, network: Pick<Network, "lidOf" | "numberOf">): OptOuts {
  const { kv, runtime, events, queueChanged, data: { callers } } = ground;
  return new OptOuts({
    kv,
    clock: runtime.clock,
    events,
    recorder: recorderOn(ground, { kv, network }),
    linesOf: (accountId) => lineIdsOf(kv, accountId),
    lidOf: (lineId, number) => network.lidOf(lineId, number),
    numberOf: (lineId, lid) => network.numberOf(lineId, lid),
    wordsOf: async (accountId) => (await callers.of(accountId))?.account.optOutWords ?? [],
    queueChanged,
  });
}
