/** The panel's audit log, newest first. An entry says what was done, never what was shown or typed. */
import type { Runtime } from "../runtime.ts";
import { Change, type Kv } from "../store/kv.ts";
import { type AuditEntry, panelKeys } from "./rows.ts";

/** How many rows one call reads at most. */
const SCAN_LIMIT = 5_000;

export type Audit = ReturnType<typeof makeAudit>;

export function makeAudit({ kv, runtime }: { kv: Kv; runtime: Runtime }) {
  return {
    async write(entry: Omit<AuditEntry, "id" | "at">): Promise<void> {
      const id = runtime.ids.next("aud");
      await kv.commit(new Change().set(panelKeys.audit(id), { ...entry, id, at: runtime.clock.now() }));
    },

    /** Returns entries of one account, or of all. `before` is the id of the last entry of the previous page. */
    async page(
      { accountId, before, limit }: { accountId: string | null; before: string | null; limit: number },
    ): Promise<AuditEntry[]> {
      const found: AuditEntry[] = [];
      const end = before === null ? {} : { end: panelKeys.audit(before) };
      const rows = kv.list({ prefix: panelKeys.audits(), ...end }, { limit: SCAN_LIMIT, reverse: true });
      for await (const { value } of rows) {
        if (accountId !== null && value.accountId !== accountId) continue;
        if (found.push(value) === limit) break;
      }
      return found;
    },
  };
}
