/**
 * Removes the rows of received messages that are too old to come again. There is one for every message of a month, so
 * each turn looks at the next stretch of them and not at all: nothing depends on when such a row goes.
 */
import { lineKeys } from "./rows.ts";
import { deleteKeys } from "../store/delete_range.ts";
import type { Key, Kv } from "../store/kv.ts";
import { MAX_MESSAGE_AGE_MS } from "./receiver.ts";
import { seenAt } from "./seen_row.ts";

/** A seen row outlives every message that could still come again. */
const KEEP_SEEN_MS = MAX_MESSAGE_AGE_MS + 86_400_000;
/** Rows that one turn reads, in some 0.1 s: a million are looked at within two hours. */
const ROWS_A_TURN = 10_000;

/** One turn: resolves to how many rows it removed. */
export type SweepSeen = (now: number, signal?: AbortSignal) => Promise<number>;

export function makeSweepSeen(kv: Kv, { rowsATurn = ROWS_A_TURN }: { rowsATurn?: number } = {}): SweepSeen {
  /** Where the next turn begins; null: at the beginning. */
  let next: Key | null = null;

  return async (now, signal) => {
    const range = { prefix: lineKeys.allSeen(), ...(next ? { start: next } : {}) };
    let read = 0;
    let last: Key | null = null;
    async function* tooOld(): AsyncGenerator<Key> {
      for await (const { key, value } of kv.list(range, { limit: rowsATurn })) {
        read++;
        last = key;
        if (seenAt(value) <= now - KEEP_SEEN_MS) yield key;
      }
    }
    const removed = await deleteKeys(kv, tooOld(), { signal });
    // The row at which it goes on is read once more, or has gone.
    next = read === rowsATurn ? last : null;
    return removed;
  };
}
