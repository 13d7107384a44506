/** Rows that expire: an index by day, used instead of the engine's own expiry, and the sweep that reads it. */
import { networkKeys } from "./rows.ts";
import { deleteKeys, deleteRange } from "../../store/delete_range.ts";
import { Change, type Key, type KeyOf, type Kv } from "../../store/kv.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Polls, kept so that votes on them can be read. Nothing is kept longer than this. */
export const POLL_KEPT_DAYS = 90;

interface Ending {
  lineId: string;
  kind: string;
  id: string;
  /** The row is kept at least this long. At most `POLL_KEPT_DAYS`. */
  days: number;
  now: number;
}

interface Expiring extends Ending {
  row: Key;
}

/** Whether a row written at time `at` and kept for `days` days is still there. Rows expire by whole days. */
export function isKept({ days, at }: { days: number; at: number }, now: number): boolean {
  return Math.floor(now / DAY_MS) < endDay(days, at);
}

/** Returns the key of the index row that says when the row expires. `now` is when the row was written. */
export function expiryOf({ lineId, kind, id, days, now }: Ending): KeyOf<Key> {
  return networkKeys.waExpiry(endDay(days, now), lineId, kind, id);
}

/** Adds to the change an index row by which the sweep deletes `row` after `days` days. */
export function expireAfter(change: Change, { row, ...ending }: Expiring): Change {
  return change.set(expiryOf(ending), row);
}

/** Deletes the index rows of a line whose own rows are gone: they contain the names of senders. */
export async function forgetEnds(kv: Kv, lineId: string, now: number): Promise<void> {
  const today = Math.floor(now / DAY_MS);
  for (let day = today - 1; day <= today + POLL_KEPT_DAYS + 1; day++) {
    await deleteRange(kv, { prefix: networkKeys.waExpiriesOf(day, lineId) });
  }
}

/** Deletes expired rows, such as seen stanzas and sent messages. Returns how many. */
export async function sweepExpired(kv: Kv, now: number): Promise<number> {
  return await deleteKeys(kv, ended(kv, Math.floor(now / DAY_MS))) / 2;
}

/** Yields each row before its index row, so that an interrupted sweep finds what is left. */
async function* ended(kv: Kv, today: number): AsyncGenerator<Key> {
  // The key part after the prefix is the day: this covers everything before tomorrow.
  const range = { prefix: networkKeys.waExpiries(), end: [...networkKeys.waExpiries(), today + 1] };
  for await (const { key, value } of kv.list<Key>(range)) {
    yield value;
    yield key;
  }
}

/** The UTC day, in days since 1970, from which the sweep may delete the row. */
function endDay(days: number, at: number): number {
  return Math.floor(at / DAY_MS) + days + 1;
}
