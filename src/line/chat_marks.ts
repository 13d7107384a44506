/** Finds the rows of a chat's messages by their ids, to mark what happens to them: edits, deletions, reactions. */
import { type ChatIndex, type InLine, type MessagePlace, reacted } from "../chat/chat_index.ts";
import { chatOf, type Message, orderInChat } from "../message/message.ts";
import { ME } from "../chat/rows.ts";
import { messageKeys } from "../message/rows.ts";
import type { Kv } from "../store/kv.ts";
import { lineKeys } from "./rows.ts";
import { orderOfSeen } from "./seen.ts";

interface MarksDeps {
  kv: Kv;
  chats: Pick<ChatIndex, "find">;
}

/**
 * Finds the place of a message by its id, of the gateway or of the network; null if it is not known, or no longer.
 * `chat` is its chat's JID or number.
 */
export async function placeOf(
  { kv, chats }: MarksDeps,
  line: InLine,
  { chat, id }: { chat: string; id: string },
): Promise<MessagePlace | null> {
  const { lineId } = line;
  const ours = id.startsWith("msg_") ? id : (await kv.get(messageKeys.messageOfNetworkId(lineId, id))).value;
  const message = ours && (await kv.get(messageKeys.message(ours))).value;
  const record = await chats.find(line, chatOf(chat));
  const parts = record?.parts ?? [];
  if (message && message.sessionId === lineId) {
    const part = chatOf(message.to);
    return parts.includes(part) ? { part, order: orderInChat(message) } : null;
  }
  const seen = await kv.getMany(parts.map((part) => lineKeys.seen(lineId, jidOf(part), id)));
  for (const [i, { value }] of seen.entries()) {
    if (value !== null) return { part: parts[i]!, order: orderOfSeen(value) };
  }
  return null;
}

/** Returns the JID of an address. */
export function jidOf(address: string): string {
  return address.includes("@") ? address : `${address}@s.whatsapp.net`;
}

/** Marks at its target a reaction that the gateway sent. */
export async function markReaction(
  { kv, chats }: { kv: Kv; chats: Pick<ChatIndex, "find" | "amend"> },
  { sessionId: lineId, accountId, to, content }: Message,
): Promise<void> {
  if (content.kind !== "reaction") return;
  const place = await placeOf({ kv, chats }, { lineId, accountId }, { chat: to, id: content.target.networkId });
  if (place) await chats.amend(lineId, place, (row) => reacted(row, ME, content.emoji));
}
