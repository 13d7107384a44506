/** Expiry: fails messages that could not leave within their time to live, also on a line that is offline. */
import type { Runtime } from "../runtime.ts";
import { messageKeys } from "./rows.ts";
import { Change, firstRow, type Kv, type Row } from "../store/kv.ts";
import { hasEnded, type Message } from "./message.ts";
import type { Recorder } from "./record.ts";

/** Returns the time of the first expiry row, Unix ms; infinity if there is none. */
export async function nextExpiry(kv: Kv): Promise<number> {
  const first = await firstRow(kv, { prefix: messageKeys.expiries() });
  return first === null ? Infinity : Number(first.key[1]);
}

/** Messages checked per batch. */
const AT_ONCE = 500;

/**
 * Fails expired messages (promise 2). Skips a message that is on its way, whose outcome decides; a message of a bulk
 * that is still being accepted; and a message of a line without a recorder here, which the line's owner fails. Their
 * expiry rows stay and are checked again the next time.
 */
export async function expireMessages(
  { kv, runtime }: { kv: Kv; runtime: Runtime },
  recorderOf: (lineId: string) => Recorder | null,
): Promise<void> {
  /** Fails the message if possible. Resolves to whether its expiry needs no further check. */
  async function expire(message: Message | null): Promise<boolean> {
    if (message === null || hasEnded(message)) return true;
    // It was rescheduled; its new expiry has a row of its own.
    if (message.expiresAt > runtime.clock.now()) return true;
    if (message.status !== "queued") return false;
    if (message.bulkId !== null && (await kv.get(messageKeys.bulk(message.bulkId))).value === null) return false;
    const recorder = recorderOf(message.sessionId);
    return recorder !== null && await recorder.expired(message.id) !== null;
  }

  async function expireRows(rows: readonly Row<string[]>[]): Promise<void> {
    const slots = await kv.getMany(rows.flatMap((row) => row.value).map((id) => messageKeys.message(id)));
    const over = await Promise.all(slots.map((slot) => expire(slot.value)));
    const change = new Change();
    let at = 0;
    for (const { key, value } of rows) {
      if (over.slice(at, at += value.length).every(Boolean)) change.delete(key);
    }
    if (change.mutations.length > 0) await kv.commit(change);
  }

  const range = { prefix: messageKeys.expiries(), end: messageKeys.expiry(runtime.clock.now() + 1, "") };
  let due: Row<string[]>[] = [];
  let messages = 0;
  for await (const row of kv.list(range)) {
    due.push(row);
    messages += row.value.length;
    if (messages < AT_ONCE) continue;
    await expireRows(due);
    due = [];
    messages = 0;
  }
  if (due.length > 0) await expireRows(due);
}
