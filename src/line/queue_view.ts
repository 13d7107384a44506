/** What waits on a line, in the order of departure, and when each will probably leave. */
import type { Accounts } from "../account/accounts.ts";
import { notFound } from "../errors.ts";
import { chatOf, hasEnded, type Message } from "../message/message.ts";
import { LineQueue } from "../message/queue/queue.ts";
import type { Clock } from "../runtime.ts";
import { lineKeys } from "./rows.ts";
import type { Kv } from "../store/kv.ts";
import { Estimate, Holds, type WaitsFor } from "./waiting.ts";

interface QueuedMessage {
  /** Without its content: a thousand long texts would take 100 MB. */
  message: Pick<Message, "id" | "to" | "status" | "priority" | "sendAt">;
  /** From 1: the one that leaves next, or is on its way. */
  place: number;
  /** Unix ms; null while the line is not connected or its queue paused, for then nobody knows; null also for never. */
  estimatedDepartureAt: number | null;
  waitsFor: WaitsFor | null;
}

/** The first `limit` messages. Throws Problem not_found, also for another account's line. */
export type QueueView = (accountId: string, lineId: string, options: { limit: number }) => Promise<QueuedMessage[]>;

export function makeQueueView(deps: { kv: Kv; clock: Clock; accounts: Pick<Accounts, "caller"> }): QueueView {
  const { kv } = deps;
  return async (accountId, lineId, { limit }) => {
    const line = (await kv.get(lineKeys.line(lineId))).value;
    const holds = line && await Holds.of(deps, line);
    if (line?.accountId !== accountId || line.wanted === "deleted" || !holds) throw notFound("session");
    const messages: QueuedMessage["message"][] = [];
    for await (const message of new LineQueue(kv, lineId).each(limit)) {
      // One may have ended since its place in the queue was read.
      const { id, to, status, priority, sendAt } = message;
      if (!hasEnded(message)) messages.push({ id, to, status, priority, sendAt });
    }
    const waits = await holds.of(messages);
    const fresh = await holds.newAmong(messages.map(({ to }) => chatOf(to)));
    const isKnown = line.status === "connected" && !holds.paused;
    const estimate = new Estimate(holds);
    return messages.map((message, i) => {
      const { id, to, status, sendAt } = message;
      // Of several messages to a new chat the first starts it.
      const startsChat = fresh.delete(chatOf(to));
      const leavesAt = status === "processing" ? holds.now : estimate.next({ notBefore: sendAt ?? 0, startsChat });
      return {
        message,
        place: i + 1,
        estimatedDepartureAt: isKnown ? leavesAt : null,
        waitsFor: status === "queued" ? waits.get(id) ?? null : null,
      };
    });
  };
}
