/** The line that a send goes out on. */
import { LRUCache } from "lru-cache";
import { atMost } from "../base/at_most.ts";
import { Problem } from "../errors.ts";
import type { Row } from "../store/kv.ts";
import type { AccountLines } from "./account_lines.ts";
import type { Line } from "./line.ts";

/** Deleted ones are among them: nobody asks for those again. */
const MOST_REMEMBERED = 10_000;

export type SendingLine = ReturnType<typeof makeSendingLine>;

export function makeSendingLine(lines: Pick<AccountLines, "row" | "each">) {
  /** Lines as they were last read. */
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
     * The line a send goes out on. Given: that one, if it is linked; offline is fine, the message waits. Not given: the
     * oldest connected, else the oldest that is linked and comes back by itself, so that a short drop loses no send.
     * Its row may be remembered, so whoever accepts a send on it checks the row, and says when it had changed (`changed`).
     * Throws session_not_connected, no_connected_session.
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

    /** The row of the line is not any more what it was. */
    changed: (lineId: string) => void remembered.delete(lineId),
  };
}
