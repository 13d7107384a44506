/** Rows with an end: an index by day in place of the engine's own expiry, and the sweep that reads it. */
import { networkKeys } from "./rows.ts";
import { deleteKeys, deleteRange } from "../../store/delete_range.ts";
import { Change, type Key, type KeyOf, type Kv } from "../../store/kv.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Polls, for votes on them: the longest that anything is kept. */
export const POLL_KEPT_DAYS = 90;

interface Ending {
  lineId: string;
  kind: string;
  id: string;
  /** Kept at least this long; at most `POLL_KEPT_DAYS`. */
  days: number;
  now: number;
}

interface Expiring extends Ending {
  row: Key;
}

/** Whether what was written `at` a time and is kept for so many days is still there: days end as a whole. */
export function isKept({ days, at }: { days: number; at: number }, now: number): boolean {
  return Math.floor(now / DAY_MS) < endDay(days, at);
}

/** The row that says when it ends. `now`: when it was written. */
export function expiryOf({ lineId, kind, id, days, now }: Ending): KeyOf<Key> {
  return networkKeys.waExpiry(endDay(days, now), lineId, kind, id);
}

/** Adds to the change that the sweep drops `row` after so many days. */
export function expireAfter(change: Change, { row, ...ending }: Expiring): Change {
  return change.set(expiryOf(ending), row);
}

/** Drops what says when rows of a line end, which are gone: it names who wrote them. */
export async function forgetEnds(kv: Kv, lineId: string, now: number): Promise<void> {
  const today = Math.floor(now / DAY_MS);
  for (let day = today - 1; day <= today + POLL_KEPT_DAYS + 1; day++) {
    await deleteRange(kv, { prefix: networkKeys.waExpiriesOf(day, lineId) });
  }
}

/** Drops what has ended: stanzas seen, messages sent. Returns how many rows. */
export async function sweepExpired(kv: Kv, now: number): Promise<number> {
  return await deleteKeys(kv, ended(kv, Math.floor(now / DAY_MS))) / 2;
}

/** Each row before what says that it ends, so that a sweep cut short finds the rest again. */
async function* ended(kv: Kv, today: number): AsyncGenerator<Key> {
  // The prefix's next key part is the day: everything before tomorrow.
  const range = { prefix: networkKeys.waExpiries(), end: [...networkKeys.waExpiries(), today + 1] };
  for await (const { key, value } of kv.list<Key>(range)) {
    yield value;
    yield key;
  }
}

/** The UTC day, in days since 1970, on which the sweep may drop it. */
function endDay(days: number, at: number): number {
  return Math.floor(at / DAY_MS) + days + 1;
}
