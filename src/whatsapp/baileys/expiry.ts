/** Rows with an end: an index by day in place of the engine's own expiry, and the sweep that reads it. */
import { networkKeys } from "./rows.ts";
import { deleteKeys } from "../../store/delete_range.ts";
import { Change, type Key, type Kv } from "../../store/kv.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

interface Expiring {
  row: Key;
  lineId: string;
  kind: string;
  id: string;
  /** Kept at least this long. */
  days: number;
  now: number;
}

/** Adds to the change that the sweep drops `row` after so many days. */
export function expireAfter(change: Change, { row, lineId, kind, id, days, now }: Expiring): Change {
  const day = Math.floor(now / DAY_MS) + days + 1;
  return change.set(networkKeys.waExpiry(day, lineId, kind, id), row);
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
