/** What an incoming message does to the index of its line's chats: a row of its own, or a mark at another one. */
import { type ChatIndex, type InLine, type MessagePlace, reacted } from "../chat/chat_index.ts";
import { chatKeys, type ChatRow, isSent, ME, type Said } from "../chat/rows.ts";
import { type EventBody, type EventData, isChatEvent, type LoggedEvent } from "../event/event.ts";
import { chatOf, type Message, orderInChat } from "../message/message.ts";
import type { OptOuts } from "../message/opt_outs.ts";
import { messageKeys } from "../message/rows.ts";
import { deleteKeys } from "../store/delete_range.ts";
import type { Change, Key, Kv, Slot } from "../store/kv.ts";
import { isGroup } from "../whatsapp/chats.ts";
import type { Incoming } from "../whatsapp/incoming.ts";
import type { Network } from "../whatsapp/network.ts";
import { lineKeys, type SeenRow } from "./rows.ts";
import { orderOfSeen } from "./seen.ts";

interface IncomingDeps {
  kv: Kv;
  chats: ChatIndex;
  optOuts: Pick<OptOuts, "known">;
}

interface Entered {
  message: Incoming;
  data: EventBody["data"];
  /** The message's seen row before. */
  before: Slot<SeenRow>;
  now: number;
}

/**
 * Adds to the change what the message means for its chat. Resolves to the time of its seen row, Unix ms, which tells
 * its place in the chat.
 */
export async function indexIncoming(
  deps: IncomingDeps,
  change: Change,
  line: InLine,
  { message, data, before, now }: Entered,
): Promise<number> {
  const { chat, change: happened, type, fromMe } = message;
  if (!isKept(chat)) return now;
  if (happened) {
    if (happened.kind === "edited") {
      await mark(deps, change, line, { chat, id: happened.target }, (row) => edited(row, happened.text, now));
    }
    if (happened.kind === "deleted") {
      await mark(deps, change, line, { chat, id: happened.target }, (row) => deleted(row, now));
    }
    return now;
  }
  if (type === "reactionMessage") {
    const id = targetOf(message);
    const by = reactorOf(message);
    if (id) await mark(deps, change, line, { chat, id }, (row) => reacted(row, by, message.text ?? ""));
    return now;
  }
  const row = saidIn(data as EventData<"message.received">, { accountId: line.accountId, isOwn: fromMe });
  const address = chatOf(chat);
  // A message that was only reported as undecryptable.
  const replaced = before.value === null ? null : { part: address, order: orderOfSeen(before.value) };
  if (replaced && await rewrite(deps, change, line, replaced, () => row)) return replaced.order / 1000;
  const { number, pushName, username } = message;
  const isOther = !fromMe && !isGroup(chat);
  const order = await deps.chats.append(change, line, {
    address,
    row,
    now,
    number: isOther ? number : null,
    name: isOther ? pushName : null,
    username: isOther ? username : undefined,
    joined: (addresses) => deps.optOuts.known(line.accountId, addresses),
    unread: (before) => fromMe ? 0 : before + 1,
  });
  return order / 1000;
}

/** Removes what is kept beside the events of received messages: their rows in chats, and their originals. */
export async function forgetReceived(
  deps: { kv: Kv; chats: ChatIndex; network: Pick<Network, "eraseReceived"> },
  events: readonly LoggedEvent[],
): Promise<void> {
  const keys: Key[] = [];
  for (const [lineId, ofLine] of Map.groupBy(events.filter(isChatEvent), ({ sessionId }) => sessionId)) {
    for (const { accountId, data: { chat, messageId: id } } of ofLine) {
      const place = await placeOf(deps, { lineId, accountId }, { chat, id });
      const row = place && await deps.kv.get(chatKeys.message(lineId, place.part, place.order));
      // Senders choose their ids: it may be that of a message that the line sent.
      if (row?.value && !isSent(row.value)) keys.push(row.key);
    }
    await deps.network.eraseReceived(
      lineId,
      ofLine.map(({ data }) => ({ chat: data.chat, networkId: data.messageId })),
    );
  }
  await deleteKeys(deps.kv, keys);
}

/** Whether the chat is a person's or a group's, not a status post or a channel. */
export function isKept(chat: string): boolean {
  return /@(s\.whatsapp\.net|lid|g\.us)$/.test(chat);
}

/** Returns the row of a message by the data of its event; `isOwn`: the line's owner wrote it. */
export function saidIn(
  data: EventData<"message.received">,
  { accountId, isOwn }: { accountId: string; isOwn: boolean },
): Said {
  const { number, pushName: name, participant, messageId: id, type, text, media, details, quoted, timestamp } = data;
  return {
    accountId,
    id,
    timestamp,
    author: isOwn ? null : { number, name, ...(participant === undefined ? {} : { jid: participant }) },
    type,
    text,
    ...(media ? { media } : {}),
    ...(details ? { details } : {}),
    ...(quoted ? { quoted } : {}),
  };
}

/** Returns by whom a reaction is, as `Reactions` names them. */
export function reactorOf(
  { fromMe, number, participant, chat }: Pick<Incoming, "fromMe" | "number" | "participant" | "chat">,
): string {
  return fromMe ? ME : number ?? participant ?? chatOf(chat);
}

/** Returns the network's id of the message that a reaction is to. */
export function targetOf({ details }: { details?: Record<string, unknown> | null | undefined }): string | null {
  const target = details?.target as { messageId?: string } | undefined;
  return target?.messageId ?? null;
}

/** Rewrites the row of a message in the same commit; does nothing if it is not known. */
async function mark(
  deps: MarksDeps,
  change: Change,
  line: InLine,
  of: { chat: string; id: string },
  next: (row: ChatRow) => ChatRow,
): Promise<void> {
  const place = await placeOf(deps, line, of);
  if (place) await rewrite(deps, change, line, place, next);
}

/** Rewrites the row at this place; resolves to whether there is one. */
async function rewrite(
  { kv }: MarksDeps,
  change: Change,
  { lineId }: InLine,
  { part, order }: MessagePlace,
  next: (row: ChatRow) => ChatRow,
): Promise<boolean> {
  const slot = await kv.get(chatKeys.message(lineId, part, order));
  if (slot.value) change.check(slot).set(slot.key, next(slot.value));
  return slot.value !== null;
}

/** The rows of what the API sent have the new text in the message's own row. */
export function edited(row: ChatRow, text: string | null, now: number): ChatRow {
  return isSent(row) ? row : { ...row, text, editedAt: now };
}

export function deleted(row: ChatRow, now: number): ChatRow {
  if (isSent(row)) return row;
  const { media: _media, details: _details, quoted: _quoted, ...rest } = row;
  return { ...rest, text: null, deletedAt: row.deletedAt ?? now };
}

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
