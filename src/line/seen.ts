/**
 * The seen rows, one for each incoming message by (line, chat, id), so that a message is emitted once,
 * however often it is delivered.
 *
 * A message that cannot be decrypted is reported as such after a while. Its sender may send it again under
 * the same id hours later, when the phone is back online. The readable message is then emitted too, once,
 * and replaces the report's row. The sender must be the same: the members of a group know each other's message ids.
 */
import { deleteKeys } from "../store/delete_range.ts";
import { type Key, type Kv, type Slot, stretchOf } from "../store/kv.ts";
import type { Incoming } from "../whatsapp/incoming.ts";
import { lineKeys, type SeenRow } from "./rows.ts";

/** Older messages are not emitted: a phone that comes back after weeks must not flood the client. */
export const MAX_MESSAGE_AGE_MS = 30 * 86_400_000;
/** A seen row outlives every message that may still be delivered again. */
export const KEEP_SEEN_MS = MAX_MESSAGE_AGE_MS + 86_400_000;
/** The author, in a seen row, of a message that the line's owner wrote. */
export const ME = "me";
/** Rows that one turn of the sweep reads, in about 0.1 s: a million rows take two hours. */
const ROWS_A_TURN = 10_000;

/** Returns the row for a message that is emitted at `now`, Unix ms. */
export function seenRow({ undecryptable, fromMe, participant }: Incoming, now: number): SeenRow {
  const from = fromMe ? ME : participant;
  if (undecryptable) return from === null ? { reportedAt: now } : { reportedAt: now, from };
  return from === null ? now : { at: now, from };
}

/** Returns the row without its author. */
export function withoutAuthor(row: SeenRow): SeenRow {
  return typeof row === "object" && "reportedAt" in row ? { reportedAt: row.reportedAt } : seenAt(row);
}

/** Returns when the row was written, Unix ms. */
export function seenAt(row: SeenRow): number {
  return typeof row === "number" ? row : "at" in row ? row.at : row.reportedAt;
}

/** Returns the author of the message: `ME` for the line's owner, a JID in a group, else null for the chat itself. */
export function seenFrom(row: SeenRow): string | null {
  return typeof row === "object" ? row.from ?? null : null;
}

/** Returns whether the message is to be emitted, given its seen row: it is new, or readable after a mere report. */
export function isNews(message: Incoming, { value }: Slot<SeenRow>): boolean {
  if (value === null) return true;
  if (message.undecryptable || typeof value !== "object" || !("reportedAt" in value)) return false;
  const { from } = value;
  if (from === undefined) return true;
  const author = message.fromMe ? ME : message.participant;
  // Where the group names its members in another way now, the author can't be compared.
  return author === from || (author !== null && from !== ME && author !== ME && serverOf(author) !== serverOf(from));
}

function serverOf(jid: string): string {
  return jid.slice(jid.indexOf("@"));
}

/**
 * Runs one turn of the sweep that removes rows of messages too old to be delivered again. Resolves to the number
 * removed. There is a row for every message of a month, so each turn reads only the next stretch of rows; nothing
 * depends on when a row is removed.
 */
type SweepSeen = (now: number, signal?: AbortSignal) => Promise<number>;

export function makeSweepSeen(kv: Kv, { rowsATurn = ROWS_A_TURN }: { rowsATurn?: number } = {}): SweepSeen {
  /** Where the next turn begins; null for the first row. */
  let next: Key | null = null;

  return async (now, signal) => {
    const stretch = await stretchOf(kv, lineKeys.allSeen(), { from: next, limit: rowsATurn });
    const tooOld = stretch.rows.filter(({ value }) => seenAt(value) <= now - KEEP_SEEN_MS);
    const removed = await deleteKeys(kv, tooOld.map(({ key }) => key), { signal });
    next = stretch.next;
    return removed;
  };
}
