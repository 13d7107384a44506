/** Retention of chats, and the removal of one person from them. */
import { deleteRange } from "../store/delete_range.ts";
import { Change, type Key, type Kv, stretchOf } from "../store/kv.ts";
import type { Traces } from "../whatsapp/person.ts";
import { OpenChat } from "./chat_record.ts";
import { chatKeys, type ChatRow, isSent } from "./rows.ts";

/** Chats checked per turn of the sweep, so about a million a day; nothing depends on when a row is removed. */
const CHATS_A_TURN = 1_000;
/** Rows read per step of an erasure. */
const ROWS_AT_ONCE = 200;

/**
 * Runs one turn of the sweep that removes messages kept before a time, Unix ms, and chats without any. Resolves to the
 * number of chats removed.
 */
type SweepChats = (before: number, signal?: AbortSignal) => Promise<number>;

export function makeSweepChats(kv: Kv): SweepChats {
  /** Where the next turn begins; null for the first row. */
  let next: Key | null = null;

  return async (before, signal) => {
    const oldest = before * 1000;
    const stretch = await stretchOf(kv, chatKeys.allPlaces(), { from: next, limit: CHATS_A_TURN });
    let removed = 0;
    for (const { key, value } of stretch.rows) {
      if (signal?.aborted) return removed;
      if ("same" in value) continue;
      const [, lineId = "", address = ""] = key.map(String);
      const chat = await OpenChat.read(kv, lineId, { accountId: "", address, other: null });
      for (const part of chat.record.parts) {
        const prefix = chatKeys.messages(lineId, part);
        await deleteRange(kv, { prefix, end: chatKeys.message(lineId, part, oldest) }, { signal });
      }
      if (chat.isNew || chat.record.last >= oldest) continue;
      const change = new Change();
      chat.remove(change);
      if (await kv.commit(change) !== null) removed++;
    }
    next = stretch.next;
    return removed;
  };
}

/**
 * Builds one step of erasing a person from the chats of a line: their own chat, what they wrote elsewhere, and their
 * name in what others wrote. The step checks the rows of messages from the key `at` on (null: from the first). `next`
 * is null at the end.
 */
export async function eraseSaid(
  kv: Kv,
  { lineId, accountId }: { lineId: string; accountId: string },
  { traces, at }: { traces: Traces; at: Key | null },
): Promise<{ change: Change; next: Key | null }> {
  const change = new Change();
  if (at === null) {
    for (const address of traces.chats) {
      const { value } = await kv.get(chatKeys.place(lineId, address));
      if (value === null) continue;
      if ("same" in value) change.delete(chatKeys.place(lineId, address));
      else (await OpenChat.read(kv, lineId, { accountId, address, other: null })).remove(change);
    }
  }
  const { rows, next } = await stretchOf(kv, chatKeys.messagesOfLine(lineId), { from: at, limit: ROWS_AT_ONCE });
  for (const row of rows) {
    const [, , part = ""] = row.key.map(String);
    const left = traces.isOf(part) ? null : without(row.value, traces);
    if (left === row.value) continue;
    change.check(row);
    if (left === null) change.delete(row.key);
    else change.set(row.key, left);
  }
  return { change, next };
}

/** Returns the row without the person; null if they wrote it. */
function without(row: ChatRow, traces: Traces): ChatRow | null {
  if (!traces.isIn(row)) return row;
  const { author = null } = isSent(row) ? {} : row;
  if (author && [author.number, author.jid].some((name) => name && traces.isOf(name))) return null;
  const { reactions, ...rest } = row;
  const kept = Object.entries(reactions ?? {}).filter(([by]) => !traces.isOf(by));
  return { ...traces.redact(rest), ...(reactions ? { reactions: Object.fromEntries(kept) } : {}) };
}
