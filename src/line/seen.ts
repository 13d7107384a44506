/**
 * The seen rows, one for each incoming message by (line, chat, id), so that a message is emitted once, however often it
 * is delivered. They also tell who wrote a message, and which messages of a chat are unread.
 *
 * A message that cannot be decrypted is reported as such after a while. Its sender may send it again under the same id
 * hours later, when the phone is back online. The readable message is then emitted too, once, and replaces the report's
 * row. The sender must be the same: the members of a group know each other's message ids.
 */
import type { ChatIndex } from "../chat/chat_index.ts";
import { notFound } from "../errors.ts";
import { chatOf } from "../message/message.ts";
import { messageKeys } from "../message/rows.ts";
import type { Clock } from "../runtime.ts";
import { deleteKeys } from "../store/delete_range.ts";
import { Change, type Key, type Kv, type Slot, stretchOf } from "../store/kv.ts";
import type { ReadMessage } from "../whatsapp/chats.ts";
import type { Incoming, IncomingChange } from "../whatsapp/incoming.ts";
import type { Network } from "../whatsapp/network.ts";
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
function seenAt(row: SeenRow): number {
  return typeof row === "number" ? row : "at" in row ? row.at : row.reportedAt;
}

/**
 * Returns the message's place in its chat (`chat/rows.ts`), in microseconds: rows of messages that have one were written
 * with that time.
 */
export function orderOfSeen(row: SeenRow): number {
  return Math.round(seenAt(row) * 1000);
}

/** Returns the row with another place in its chat, in microseconds. */
export function withOrder(row: SeenRow, order: number): SeenRow {
  const at = order / 1000;
  if (typeof row === "number") return at;
  return "at" in row ? { ...row, at } : { ...row, reportedAt: at };
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
 * Makes the sweep that removes rows of messages too old to be delivered again. Each turn resolves to the number removed.
 * There is a row for every message of a month, so a turn reads only the next stretch of rows; nothing depends on when a
 * row is removed.
 */
export function makeSweepSeen(kv: Kv, { rowsATurn = ROWS_A_TURN }: { rowsATurn?: number } = {}) {
  /** Where the next turn begins; null for the first row. */
  let next: Key | null = null;

  return async (now: number, signal?: AbortSignal): Promise<number> => {
    const stretch = await stretchOf(kv, lineKeys.allSeen(), { from: next, limit: rowsATurn });
    const tooOld = stretch.rows.filter(({ value }) => seenAt(value) <= now - KEEP_SEEN_MS);
    const removed = await deleteKeys(kv, tooOld.map(({ key }) => key), { signal });
    next = stretch.next;
    return removed;
  };
}

interface AuthorshipDeps {
  kv: Kv;
  network: Pick<Network, "recall">;
}

interface Said {
  chat: string;
  /** `ME` for the line's owner, else the author's JID, with its digits if they are known. */
  author: typeof ME | { jid: string; number: string | null };
}

/**
 * Returns whether the sender may change the message: a stanza may name any message, no matter who wrote it. Its author
 * and the line's owner may, and an admin may delete in the group. Changes to a message that the line does not know are
 * let through, because its author is unknown. Throws StoreError, SealError.
 */
export async function mayChange(
  deps: AuthorshipDeps,
  lineId: string,
  { incoming, change }: { incoming: Incoming; change: IncomingChange },
): Promise<boolean> {
  if (incoming.fromMe || change.kind === "vote") return true;
  const { chat, participant, number } = incoming;
  const said = await saidBefore(deps, lineId, { chat, target: change.target });
  if (said === null) return true;
  if (change.kind === "deleted" && change.byAdmin && said.chat === chat) return true;
  if (said.author === ME) return false;
  return said.author.jid === (participant ?? chat) || (number !== null && said.author.number === number);
}

/** Finds the chat and author of a message. Null if the message is unknown or was only reported as undecryptable. */
async function saidBefore(
  { kv, network }: AuthorshipDeps,
  lineId: string,
  { chat, target }: { chat: string; target: string },
): Promise<Said | null> {
  const { value: messageId } = await kv.get(messageKeys.messageOfNetworkId(lineId, target));
  if (messageId !== null) {
    const { value: ours } = await kv.get(messageKeys.message(messageId));
    return { chat: ours?.to ?? chat, author: ME };
  }
  const recalled = await network.recall(lineId, target);
  const original = recalled && {
    chat: recalled.chat,
    author: recalled.fromMe ? ME : { jid: recalled.participant ?? recalled.chat, number: recalled.number },
  } as const;
  if (original?.chat === chat) return original;
  // Senders choose their message ids, so a recalled message of another chat may share this id. The seen row of this
  // chat tells who wrote the message here.
  const { value: row } = await kv.get(lineKeys.seen(lineId, chat, target));
  if (row === null || (typeof row === "object" && "reportedAt" in row)) return original;
  const from = seenFrom(row) ?? chat;
  return { chat, author: from === ME ? ME : { jid: from, number: null } };
}

/** Limit of messages marked as read at once, the newest ones; older messages of the chat count as read with them. */
const MOST_AT_ONCE = 500;
/** Rows read per chat. A group with more messages than this in a month hardly depends on the gateway to be read. */
const ROWS_READ = 20_000;

interface UnreadDeps {
  kv: Kv;
  clock: Clock;
  chats: Pick<ChatIndex, "read">;
}

/** Finds the received messages of a chat that are still unread. */
export function makeUnread({ kv, clock, chats: index }: UnreadDeps) {
  /**
   * Returns the message with this id, or, if that is null, all messages since the chat was last read. `chats`
   * are the possible names of the chat. `done` records that they were read. Throws Problem not_found for a
   * message that is not in the chat.
   */
  async function of(
    lineId: string,
    { chats, networkId }: { chats: readonly string[]; networkId: string | null },
  ): Promise<{ messages: ReadMessage[]; done(): Promise<void> }> {
    const { value: line } = await kv.get(lineKeys.line(lineId));
    // What another number of the line received is not read by the present one.
    const { numberSince = 0 } = line ?? {};
    const read = async (upTo: number) => {
      if (line) await index.read({ lineId, accountId: line.accountId }, chatOf(chats[0]!), upTo);
    };
    if (networkId !== null) {
      const { messages, order } = await one(lineId, { chats, networkId, notBefore: numberSince });
      return { messages, done: () => read(order) };
    }
    const now = clock.now();
    const found: (ReadMessage & { at: number })[] = [];
    for (const chat of chats) {
      const readAt = (await kv.get(lineKeys.chatRead(lineId, chat))).value ?? 0;
      found.push(...await Array.fromAsync(since(lineId, chat, Math.max(readAt, numberSince))));
    }
    const newest = found.sort((a, b) => a.at - b.at).slice(-MOST_AT_ONCE);
    const change = new Change();
    for (const chat of chats) change.set(lineKeys.chatRead(lineId, chat), now);
    return {
      messages: newest.map(({ at: _, ...message }) => message),
      done: async () => {
        await kv.commit(change);
        await read(now * 1000);
      },
    };
  }

  async function one(
    lineId: string,
    { chats, networkId, notBefore }: { chats: readonly string[]; networkId: string; notBefore: number },
  ): Promise<{ messages: ReadMessage[]; order: number }> {
    for (const chat of chats) {
      const { value } = await kv.get(lineKeys.seen(lineId, chat, networkId));
      if (value === null || seenAt(value) < notBefore) continue;
      const from = seenFrom(value);
      const messages = from === ME ? [] : [{ chat, networkId, participant: from }];
      return { messages, order: orderOfSeen(value) };
    }
    throw notFound("message in this chat");
  }

  async function* since(lineId: string, chat: string, readAt: number): AsyncGenerator<ReadMessage & { at: number }> {
    for await (const row of kv.list({ prefix: lineKeys.seenOfChat(lineId, chat) }, { limit: ROWS_READ })) {
      const [at, from] = [seenAt(row.value), seenFrom(row.value)];
      if (at >= readAt && from !== ME) yield { chat, networkId: String(row.key.at(-1)), participant: from, at };
    }
  }

  return { of };
}
