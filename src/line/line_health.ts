/** How a line is: signs of life, what the network forbids it, and what waits on it. */
import type { Accounts } from "../account/accounts.ts";
import { LineQueue } from "../message/queue/queue.ts";
import type { Clock } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import type { Restriction } from "../whatsapp/connection.ts";
import type { AccountLines } from "./account_lines.ts";
import type { LiveLines, Vitals } from "./live.ts";
import type { NewChats } from "./new_chats.ts";
import { Holds, type WaitsFor } from "./waiting.ts";

interface LineHealth extends Vitals {
  restriction: Restriction | null;
  /** New chats that the plan lets the line start today; null: as many as it likes. */
  newChats: NewChats | null;
  /** `waitsFor`: what holds all of it beside its turn. */
  queue: { waiting: number; oldestSeconds: number; waitsFor: WaitsFor | null };
}

interface LineHealthDeps {
  kv: Kv;
  clock: Clock;
  accounts: Pick<Accounts, "caller">;
  lines: Pick<AccountLines, "row">;
  live: Pick<LiveLines, "vitals">;
}

/** Asks the network where the line is connected. Throws Problem not_found, NetworkTimeout. */
export async function readLineHealth(
  { kv, clock, accounts, lines, live }: LineHealthDeps,
  accountId: string,
  lineId: string,
): Promise<LineHealth> {
  const { value: { restriction } } = await lines.row(accountId, lineId);
  const holds = await Holds.of({ kv, accounts, clock }, { accountId, id: lineId });
  const queue = new LineQueue(kv, lineId);
  const [waiting, since] = [await queue.size(), await queue.oldestSince()];
  return {
    ...await live.vitals(lineId),
    restriction: restriction ?? null,
    newChats: holds?.newChats ?? null,
    queue: {
      waiting,
      oldestSeconds: since === null ? 0 : Math.max(0, Math.floor((clock.now() - since) / 1000)),
      waitsFor: holds?.ofAll() ?? null,
    },
  };
}
