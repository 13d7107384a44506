/** The panel's audit log, newest first. An entry says what was done, never what was shown or typed. */
import type { Runtime } from "../runtime.ts";
import { Change, type Kv } from "../store/kv.ts";
import { type AuditEntry, panelKeys } from "./rows.ts";

export type Audit = ReturnType<typeof makeAudit>;

export function makeAudit({ kv, runtime }: { kv: Kv; runtime: Runtime }) {
  return {
    async write(entry: Omit<AuditEntry, "id" | "at">): Promise<void> {
      const id = runtime.ids.next("aud");
      await kv.commit(new Change().set(panelKeys.audit(id), { ...entry, id, at: runtime.clock.now() }));
    },

    /** Returns a page of entries. `before` is the id of the last entry of the previous page. */
    async page({ before, limit }: { before: string | null; limit: number }): Promise<AuditEntry[]> {
      const end = before === null ? {} : { end: panelKeys.audit(before) };
      const rows = kv.list({ prefix: panelKeys.audits(), ...end }, { limit, reverse: true });
      return await Array.fromAsync(rows, ({ value }) => value);
    },
  };
}
