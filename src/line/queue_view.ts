/** What waits on a line, in the order of departure, and when each will probably leave. */
import type { Accounts } from "../account/account.ts";
import { notFound } from "../errors.ts";
import { hasEnded, type Message } from "../message/message.ts";
import { LineQueue } from "../message/queue.ts";
import type { Clock } from "../runtime.ts";
import { lineKeys } from "./rows.ts";
import type { Kv } from "../store/kv.ts";
import { delaysOf, nextDeparture } from "./pacing.ts";

/** What a message waits for beside its turn, and until when (Unix ms; null: until somebody lets it go on). */
type WaitsFor = { kind: "schedule"; until: number } | { kind: "paused"; until: null };

interface QueuedMessage {
  /** Without its content: a thousand long texts would take 100 MB. */
  message: Pick<Message, "id" | "to" | "status" | "priority" | "sendAt">;
  /** From 1: the one that leaves next, or is on its way. */
  place: number;
  /** Unix ms; null while the line is not connected or its queue paused, for then nobody knows. */
  estimatedDepartureAt: number | null;
  waitsFor: WaitsFor | null;
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
      const { id, to, status, priority, sendAt } = message;
      if (!hasEnded(message)) messages.push({ id, to, status, priority, sendAt });
    }
    const delays = delaysOf(plan);
    const pacing = (await kv.get(lineKeys.pacing(lineId))).value;
    const now = clock.now();
    const first = messages[0]?.status === "processing" ? now : Math.max(now, nextDeparture(pacing, now, delays));
    const pause = (delays.minMs + delays.maxMs) / 2;
    const paused = (await kv.get(lineKeys.queuePaused(lineId))).value !== null;
    const isKnown = line.status === "connected" && !paused;
    return messages.map((message, i) => {
      const until = message.sendAt !== null && message.sendAt > now ? message.sendAt : null;
      const waitsFor: WaitsFor | null = paused
        ? { kind: "paused", until: null }
        : until === null
        ? null
        : { kind: "schedule", until };
      const leavesAt = Math.max(Math.round(first + i * pause), until ?? 0);
      return { message, place: i + 1, estimatedDepartureAt: isKnown ? leavesAt : null, waitsFor };
    });
  };
}
