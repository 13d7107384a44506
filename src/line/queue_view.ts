/** What waits on a line, in the order of departure, and when each will probably leave. */
import type { Accounts } from "../account/account.ts";
import { notFound } from "../errors.ts";
import { hasEnded, type Message } from "../message/message.ts";
import { LineQueue } from "../message/queue.ts";
import type { Clock } from "../runtime.ts";
import { lineKeys } from "./rows.ts";
import type { Kv } from "../store/kv.ts";
import { delaysOf, nextDeparture } from "./pacing.ts";

export interface QueuedMessage {
  /** Without its content: a thousand long texts would take 100 MB. */
  message: Pick<Message, "id" | "to" | "status">;
  /** From 1: the one that leaves next, or is on its way. */
  place: number;
  /** Unix ms; null while the line is not connected, for then nobody knows. */
  estimatedDepartureAt: number | null;
}

/** The first `limit` messages. Throws Problem not_found, also for another account's line. */
export type QueueView = (accountId: string, lineId: string, options: { limit: number }) => Promise<QueuedMessage[]>;

export function makeQueueView(
  { kv, clock, accounts }: { kv: Kv; clock: Clock; accounts: Pick<Accounts, "caller"> },
): QueueView {
  return async (accountId, lineId, { limit }) => {
    const line = (await kv.get(lineKeys.line(lineId))).value;
    const plan = (await accounts.caller(accountId))?.plan;
    if (line?.accountId !== accountId || line.wanted === "deleted" || !plan) throw notFound("session");
    const messages: QueuedMessage["message"][] = [];
    for await (const message of new LineQueue(kv, lineId).each(limit)) {
      // One may have ended since its place in the queue was read.
      if (!hasEnded(message)) messages.push({ id: message.id, to: message.to, status: message.status });
    }
    const delays = delaysOf(plan);
    const pacing = (await kv.get(lineKeys.pacing(lineId))).value;
    const now = clock.now();
    const first = messages[0]?.status === "processing" ? now : Math.max(now, nextDeparture(pacing, now, delays));
    const pause = (delays.minMs + delays.maxMs) / 2;
    return messages.map((message, i) => ({
      message,
      place: i + 1,
      estimatedDepartureAt: line.status === "connected" ? Math.round(first + i * pause) : null,
    }));
  };
}
