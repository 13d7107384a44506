/**
 * What became of an incoming message, so that it is emitted once however often it comes: a row of its (line, chat, id).
 *
 * A message that did not decrypt is reported after a while. Its sender may answer hours later, under the same id, when
 * the phone is online again: what can be read then is news, so the row of a mere report gives way to it, once.
 */
import { deleteKeys } from "../store/delete_range.ts";
import { type Key, type Kv, type Slot, stretchOf } from "../store/kv.ts";
import type { Incoming } from "../whatsapp/incoming.ts";
import { lineKeys, type SeenRow } from "./rows.ts";

/** Older messages are history, not news: a phone that comes back after weeks must not flood the client. */
export const MAX_MESSAGE_AGE_MS = 30 * 86_400_000;
/** A seen row outlives every message that could still come again. */
export const KEEP_SEEN_MS = MAX_MESSAGE_AGE_MS + 86_400_000;
/** How a row names the line's owner. */
export const ME = "me";
/** Rows that one turn reads, in some 0.1 s: a million are looked at within two hours. */
const ROWS_A_TURN = 10_000;

/** The row of a message that is emitted now, Unix ms. */
export function seenRow({ undecryptable, fromMe, participant }: Incoming, now: number): SeenRow {
  if (undecryptable) return { reportedAt: now };
  const from = fromMe ? ME : participant;
  return from === null ? now : { at: now, from };
}

/** When the row was written, Unix ms. */
export function seenAt(row: SeenRow): number {
  return typeof row === "number" ? row : "at" in row ? row.at : row.reportedAt;
}

/** Who wrote the message: `me` for the line's owner, a JID in a group, else null. */
export function seenFrom(row: SeenRow): string | null {
  return typeof row === "object" && "from" in row ? row.from : null;
}

/** Whether the message says something that was not emitted yet, going by what stands in its row's place. */
export function isNews({ undecryptable }: Pick<Incoming, "undecryptable">, { value }: Slot<SeenRow>): boolean {
  return value === null || (!undecryptable && typeof value === "object" && "reportedAt" in value);
}

/**
 * One turn of removing the rows of messages that are too old to come again: resolves to how many. There is one for every
 * message of a month, so each turn looks at the next stretch of them: nothing depends on when such a row goes.
 */
type SweepSeen = (now: number, signal?: AbortSignal) => Promise<number>;

export function makeSweepSeen(kv: Kv, { rowsATurn = ROWS_A_TURN }: { rowsATurn?: number } = {}): SweepSeen {
  /** Where the next turn begins; null: at the beginning. */
  let next: Key | null = null;

  return async (now, signal) => {
    const stretch = await stretchOf(kv, lineKeys.allSeen(), { from: next, limit: rowsATurn });
    const tooOld = stretch.rows.filter(({ value }) => seenAt(value) <= now - KEEP_SEEN_MS);
    const removed = await deleteKeys(kv, tooOld.map(({ key }) => key), { signal });
    next = stretch.next;
    return removed;
  };
}
