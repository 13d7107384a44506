/** Erasing a person from the chats of a line: when they wrote, what was seen and read of them. */
import { Change, type Key, type Kv } from "../store/kv.ts";
import { Stretch } from "../store/stretch.ts";
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
  const stretch = new Stretch(kv, { prefix: lineKeys.seenOfLine(lineId), from: at, limit: READ_AT_ONCE });
  for await (const { key, value } of stretch.rows()) {
    const [, , chat = "", networkId = ""] = key.map(String);
    if (traces.isOf(chat)) change.delete(key);
    // Of a group's message it is still known that it came.
    else if (traces.isOf(seenFrom(value) ?? "")) change.set(lineKeys.seen(lineId, chat, networkId), seenAt(value));
  }
  return { change, next: stretch.next };
}
