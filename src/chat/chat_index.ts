/**
 * Keeps the index of a line's chats: one row a message, written in the commit that keeps the message, and one record a
 * chat. A message has its place when it was received or first handed to the network.
 */
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import type { Network } from "../whatsapp/network.ts";
import { OpenChat } from "./chat_record.ts";
import { chatKeys, type ChatRecord, type ChatRow, isReceived, type Reactions } from "./rows.ts";

export interface InLine {
  lineId: string;
  accountId: string;
}

/** A message's place in the index. */
export interface MessagePlace {
  /** The address that it came by or went to. */
  part: string;
  order: number;
}

interface ChatIndexDeps {
  kv: Kv;
  network: Pick<Network, "lidOf" | "numberOf">;
}

/** What the network or a client tells of a chat. `lid`: by which the person is known from now on. */
export type Known = Partial<Pick<ChatRecord, "name" | "username" | "lid">>;

interface Appended {
  address: string;
  row: ChatRow;
  now: number;
  /** The person's number, if the message tells it. */
  number?: string | null;
  /** The public name of the other side, if the message tells it. */
  name?: string | null;
  /** Their username, if the message tells it. */
  username?: string | undefined;
  /** Called, before anything is written, if these turn out to be one person's. */
  joined?(addresses: readonly string[]): Promise<void>;
  /** How many messages of the chat are unread with this one. */
  unread(before: number): number;
}

export type ChatIndex = ReturnType<typeof makeChatIndex>;

export function makeChatIndex({ kv, network }: ChatIndexDeps) {
  /** Adds the message to the change, which fails if its chat changes meanwhile; resolves to the message's order. */
  async function append(
    change: Change,
    line: InLine,
    { address, row, now, number = null, name = null, username, joined, unread }: Appended,
  ): Promise<number> {
    const chat = await open(line, { address, number });
    const { record } = chat;
    if (chat.isJoin) await joined?.(chat.addresses);
    const order = chat.nextOrder(now);
    change.set(chatKeys.message(line.lineId, address, order), row);
    chat.write(change, {
      parts: record.parts.includes(address) ? record.parts : [...record.parts, address],
      name: name ?? record.name,
      ...(username === undefined ? {} : { username }),
      unread: unread(record.unread),
      ...(isReceived(row) ? { wrote: true } : {}),
      last: order,
    });
    return order;
  }

  /** Reads the chat with this address; a person may be known by two. */
  async function open(
    { lineId, accountId }: InLine,
    { address, number = null }: { address: string; number?: string | null },
  ) {
    const readWith = (other: string | null) => OpenChat.read(kv, lineId, { accountId, address, other });
    if (address.endsWith("@lid")) {
      if (number === null) {
        const chat = await readWith(null);
        if (chat.record.number !== null) return chat;
      }
      return await readWith(number ?? await network.numberOf(lineId, address));
    }
    const chat = await readWith(null);
    if (address.includes("@") || chat.record.lid !== null) return chat;
    const lid = await network.lidOf(lineId, address);
    return lid === null ? chat : await readWith(lid);
  }

  /** Resolves to all addresses of the person that the line knows. */
  async function addressesOf(line: InLine, address: string): Promise<string[]> {
    return (await open(line, { address })).addresses;
  }

  /** Resolves to the chat's record; null if there is no such chat. */
  async function find(line: InLine, address: string): Promise<ChatRecord | null> {
    const { record, isNew } = await open(line, { address });
    return isNew ? null : record;
  }

  /** Records that the chat was read, up to this order if one is given. */
  async function read(line: InLine, address: string, upTo: number = Infinity): Promise<void> {
    await retryOnConflict(kv, async () => {
      const chat = await open(line, { address });
      const change = new Change();
      const { record } = chat;
      if (chat.isNew || record.unread === 0) return { change, result: null };
      const unread = upTo >= record.last ? 0 : Math.min(record.unread, await receivedAfter(line.lineId, record, upTo));
      if (unread !== record.unread) chat.write(change, { unread });
      return { change, result: null };
    });
  }

  /** Notes what became known of a chat; nothing if there is no such chat. */
  async function note(line: InLine, address: string, known: Known): Promise<void> {
    await retryOnConflict(kv, async () => {
      const { lid } = known;
      const chat = lid === undefined
        ? await open(line, { address })
        : await OpenChat.read(kv, line.lineId, { accountId: line.accountId, address, other: lid });
      const change = new Change();
      const isNews = Object.entries(known).some(([name, value]) => chat.record[name as keyof Known] !== value);
      if (!chat.isNew && (isNews || lid !== undefined)) chat.write(change, known);
      return { change, result: null };
    });
  }

  /** Changes the row of a message, in a commit of its own; does nothing if it is gone. */
  async function amend(lineId: string, { part, order }: MessagePlace, next: (row: ChatRow) => ChatRow): Promise<void> {
    await retryOnConflict(kv, async () => {
      const slot = await kv.get(chatKeys.message(lineId, part, order));
      const change = new Change();
      return { change: slot.value ? change.check(slot).set(slot.key, next(slot.value)) : change, result: null };
    });
  }

  async function receivedAfter(lineId: string, { parts, unread }: ChatRecord, order: number): Promise<number> {
    let count = 0;
    for (const part of parts) {
      const prefix = chatKeys.messages(lineId, part);
      const range = { prefix, start: chatKeys.message(lineId, part, order + 1) };
      for await (const { value } of kv.list(range, { reverse: true })) {
        if (isReceived(value) && ++count >= unread) return count;
      }
    }
    return count;
  }

  return { append, open, addressesOf, find, read, note, amend };
}

/** Returns the row with the reaction; an empty emoji takes an earlier one back. */
export function reacted(row: ChatRow, by: string, emoji: string): ChatRow {
  const reactions: Reactions = { ...row.reactions };
  if (emoji) reactions[by] = emoji;
  else delete reactions[by];
  return { ...row, reactions };
}
