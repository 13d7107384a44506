/**
 * Messages sent, failed and received by day. They are counted from the event log, with a cursor, when somebody views
 * them, so that sending has no extra cost. Days are kept for a year, even after their events have been removed.
 */
import type { EventLog } from "../event/event_log.ts";
import { deleteRange } from "../store/delete_range.ts";
import { Change, type Kv } from "../store/kv.ts";
import { type DayCounts, panelKeys } from "./rows.ts";

const COUNTED: Readonly<Record<string, keyof DayCounts>> = {
  "message.sent": "sent",
  "message.failed": "failed",
  "message.received": "received",
};
const KEPT_MS = 366 * 24 * 60 * 60_000;
const PAGE = 1_000;
/** Limit for one view; the next one continues. */
const MOST_PAGES = 20;

export function makeUsage({ kv, events }: { kv: Kv; events: Pick<EventLog, "read"> }) {
  /** Counts a page of events; resolves to false if none is left. */
  async function fold(accountId: string): Promise<boolean> {
    const cursor = await kv.get(panelKeys.usageCursor(accountId));
    const page = await events.read(accountId, { after: cursor.value, types: null, sessionId: null, limit: PAGE });
    if (page.next === null) return false;
    const days = new Map<string, DayCounts>();
    for (const { event, createdAt } of page.events) {
      const kind = COUNTED[event];
      if (!kind) continue;
      const day = dayOf(createdAt);
      const counts = days.get(day) ?? { sent: 0, failed: 0, received: 0 };
      counts[kind]++;
      days.set(day, counts);
    }
    const keys = [...days.keys()].map((day) => panelKeys.usage(accountId, day));
    const before = await kv.getMany(keys);
    const change = new Change().check(cursor).set(panelKeys.usageCursor(accountId), page.next);
    [...days.values()].forEach((counts, i) => {
      const { sent = 0, failed = 0, received = 0 } = before[i]!.value ?? {};
      change.set(keys[i]!, {
        sent: sent + counts.sent,
        failed: failed + counts.failed,
        received: received + counts.received,
      });
    });
    // A failed precondition means that a concurrent view has counted these events.
    await kv.commit(change);
    const newest = page.events.at(-1);
    if (newest) {
      const end = panelKeys.usage(accountId, dayOf(newest.createdAt - KEPT_MS));
      await deleteRange(kv, { prefix: panelKeys.usageOf(accountId), end });
    }
    return true;
  }

  return {
    /** Returns the days since `from` (`YYYY-MM-DD`) with any activity, oldest first. */
    async days(accountId: string, from: string): Promise<{ days: ({ day: string } & DayCounts)[] }> {
      let more = true;
      for (let page = 0; more && page < MOST_PAGES; page++) more = await fold(accountId);
      const days: ({ day: string } & DayCounts)[] = [];
      const range = { prefix: panelKeys.usageOf(accountId), start: panelKeys.usage(accountId, from) };
      for await (const { key, value } of kv.list(range)) days.push({ day: String(key.at(-1)), ...value });
      return { days };
    },
  };
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
