/** Erasing a person from the chats of a line: when they wrote, what was seen and read of them. */
import { Change, type Key, type Kv } from "../store/kv.ts";
import type { Traces } from "../whatsapp/person.ts";
import { lineKeys } from "./rows.ts";
import { seenAt, seenFrom } from "./seen.ts";

/** Rows of one step. */
const READ_AT_ONCE = 500;

/** Looks at the next rows from a key on (null: from the first); `next` is null at the end. */
export async function eraseChats(
  kv: Kv,
  lineId: string,
  { traces, at }: { traces: Traces; at: Key | null },
): Promise<{ change: Change; next: Key | null }> {
  const change = new Change();
  for (const chat of traces.chats) {
    change.delete(lineKeys.heard(lineId, chat)).delete(lineKeys.knownChat(lineId, chat))
      .delete(lineKeys.chatRead(lineId, chat));
  }
  const range = { prefix: lineKeys.seenOfLine(lineId), ...(at ? { start: at } : {}) };
  let read = 0;
  let last: Key | null = null;
  for await (const { key, value } of kv.list(range, { limit: READ_AT_ONCE })) {
    read++;
    last = key;
    const [, , chat = "", networkId = ""] = key.map(String);
    if (traces.isOf(chat)) change.delete(key);
    // Of a group's message it is still known that it came.
    else if (traces.isOf(seenFrom(value) ?? "")) change.set(lineKeys.seen(lineId, chat, networkId), seenAt(value));
  }
  return { change, next: read === READ_AT_ONCE ? last : null };
}
