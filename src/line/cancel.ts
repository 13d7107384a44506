/** Cancelling tells the line: the message behind has what is left of the pause to get ready (promise 2). */
import type { Cancel } from "../message/cancel.ts";
import type { Supervisor } from "./supervisor.ts";

/** Cancels as `cancel` does. */
export function makeLineCancel(cancel: Cancel, lines: Pick<Supervisor, "messageCancelled">): Cancel {
  return async (accountId, messageOrBulkId) => {
    const cancelled = await cancel(accountId, messageOrBulkId);
    for (const lineId of new Set(cancelled.map(({ sessionId }) => sessionId))) lines.messageCancelled(lineId);
    return cancelled;
  };
}
