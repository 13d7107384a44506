/** Chooses the line of a send. */
import { LRUCache } from "lru-cache";
import { atMost } from "../base/at_most.ts";
import { Problem } from "../errors.ts";
import type { Row } from "../store/kv.ts";
import type { AccountLines } from "./account_lines.ts";
import type { Line } from "./line.ts";

/** Size of the cache. Deleted lines need no invalidation: they are never requested again, and get evicted. */
const MOST_REMEMBERED = 10_000;

export type SendingLine = ReturnType<typeof makeSendingLine>;

export function makeSendingLine(lines: Pick<AccountLines, "row" | "each">) {
  /** Cache of line rows as they were last read. */
  const remembered = new LRUCache<string, Row<Line>>(atMost(MOST_REMEMBERED));

  async function defaultLine(accountId: string): Promise<string> {
    let back: string | null = null;
    for await (const line of lines.each(accountId)) {
      if (line.status === "connected" && line.wanted === "connected") return line.id;
      if (line.linked && line.wanted === "connected" && !line.halted) back ??= line.id;
    }
    if (back !== null) return back;
    throw new Problem("no_connected_session", "The account has no connected session to send from.");
  }

  return {
    /**
     * Returns the row of the line for a send. With a `lineId`, that line, if it is linked; it may be offline, and the
     * message waits. Without one, the oldest connected line, or else the oldest linked line that will reconnect by
     * itself, so that a short disconnection refuses no send. The row may come from the cache, so the caller must check
     * it in the commit that accepts the message, and call `changed` on a conflict. Throws Problem not_found,
     * session_not_connected, no_connected_session.
     */
    async forSending(accountId: string, lineId: string | null): Promise<Row<Line>> {
      const chosen = lineId ?? await defaultLine(accountId);
      const known = remembered.get(chosen);
      if (known?.value.accountId === accountId) return known;
      const found = await lines.row(accountId, chosen);
      const { linked, wanted, status } = found.value;
      if (!linked || wanted === "logged_out" || wanted === "exporting") {
        throw new Problem("session_not_connected", `The session is ${status}: link it before sending.`);
      }
      remembered.set(chosen, found);
      return found;
    },

    /** Invalidates the cached row of the line. */
    changed: (lineId: string) => void remembered.delete(lineId),
  };
}
