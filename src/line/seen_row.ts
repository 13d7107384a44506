/**
 * What became of an incoming message, so that it is told once however often it comes: a row of its (line, chat, id).
 *
 * A message that did not decrypt is reported after a while. Its sender may answer hours later, under the same id, when
 * the phone is online again: what can be read then is news, so the row of a mere report gives way to it, once.
 */
import type { Slot } from "../store/kv.ts";
import type { Incoming } from "../whatsapp/connection.ts";

/** When the message was told, Unix ms, or when it was only reported as unreadable. */
export type SeenRow = number | { reportedAt: number };

/** The row of a message that is told now, Unix ms. */
export function seenRow({ undecryptable }: Pick<Incoming, "undecryptable">, now: number): SeenRow {
  return undecryptable ? { reportedAt: now } : now;
}

/** When the row was written, Unix ms. */
export function seenAt(row: SeenRow): number {
  return typeof row === "number" ? row : row.reportedAt;
}

/** Whether the message says something that was not told yet, going by what stands in its row's place. */
export function isNews({ undecryptable }: Pick<Incoming, "undecryptable">, { value }: Slot<SeenRow>): boolean {
  return value === null || (!undecryptable && typeof value !== "number");
}
