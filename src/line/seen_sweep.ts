/**
 * Removes the rows of received messages that are too old to come again. There is one for every message of a month, so
 * each turn looks at the next stretch of them and not at all: nothing depends on when such a row goes.
 */
import { lineKeys } from "./rows.ts";
import { Change, type Key, type Kv } from "../store/kv.ts";
import { MAX_MESSAGE_AGE_MS } from "./receiver.ts";
import { seenAt } from "./seen_row.ts";

/** A seen row outlives every message that could still come again. */
const KEEP_SEEN_MS = MAX_MESSAGE_AGE_MS + 86_400_000;
/** Rows that one turn reads, in some 0.1 s: a million are looked at within two hours. */
const ROWS_A_TURN = 10_000;
const ROWS_A_COMMIT = 500;

/** One turn: resolves to how many rows it removed. */
export type SweepSeen = (now: number, signal?: AbortSignal) => Promise<number>;

export function makeSweepSeen(kv: Kv, { rowsATurn = ROWS_A_TURN }: { rowsATurn?: number } = {}): SweepSeen {
  /** Where the next turn begins; null: at the beginning. */
  let next: Key | null = null;

  return async (now, signal) => {
    const prefix = lineKeys.allSeen();
    let read = 0;
    let removed = 0;
    let last: Key | null = null;
    let change = new Change();
    for await (const { key, value } of kv.list({ prefix, ...(next ? { start: next } : {}) }, { limit: rowsATurn })) {
      if (signal?.aborted) break;
      read++;
      last = key;
      if (seenAt(value) > now - KEEP_SEEN_MS) continue;
      change.delete(key);
      removed++;
      if (change.mutations.length < ROWS_A_COMMIT) continue;
      await kv.commit(change);
      change = new Change();
    }
    if (change.mutations.length > 0) await kv.commit(change);
    // The row at which it goes on is read once more, or has gone.
    next = read === rowsATurn ? last : null;
    return removed;
  };
}
