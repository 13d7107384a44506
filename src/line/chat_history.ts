/** Reads the chats of a line: the list, the messages of one, and the people that the line knows. */
import { partOfNumber } from "../base/phone_number.ts";
import type { ChatIndex, InLine } from "../chat/chat_index.ts";
import { chatKeys, type ChatRecord, type ChatRow, isSent } from "../chat/rows.ts";
import { invalid, notFound } from "../errors.ts";
import { messagesOf } from "../message/history/ledger.ts";
import { filled } from "../message/templates/filled.ts";
import { chatOf, type Message } from "../message/message.ts";
import type { Key, Kv, Row } from "../store/kv.ts";
import { isGroup } from "../whatsapp/chats.ts";
import { placeOf } from "./chat_entries.ts";

/** A message of a chat as it is stored: with the gateway's own row if the gateway sent it. */
export interface ChatEntry {
  order: number;
  row: ChatRow;
  /** Null if the gateway did not send it. */
  message: Message | null;
}

export interface Listed {
  record: ChatRecord;
  /** The chat's newest message; null if it was erased or is no longer kept. */
  newest: ChatEntry | null;
}

interface ListQuery {
  limit: number;
  /** `next` of the page before. */
  after: string | null;
  /** Part of a name or number. */
  q: string | null;
  unread: boolean;
  /** Only chats in which the other side has written. */
  wrote: boolean;
}

interface MessagesQuery {
  limit: number;
  /** Only messages older than this one: `next` of a page, or a message's id. */
  before: string | null;
  /** Only messages newer than this one. */
  after: string | null;
}

/** Chats examined for a search in one request, so that it ends; `next` continues. */
const SEARCHED_AT_ONCE = 2_000;
const CURSOR = /^cur_(\d{1,16})$/;
const CHAT_CURSOR = /^cur_(\d{1,16})_([\w.@-]{1,64})$/;

export class ChatHistory {
  readonly #kv: Kv;
  readonly #chats: ChatIndex;

  constructor({ kv, chats }: { kv: Kv; chats: ChatIndex }) {
    this.#kv = kv;
    this.#chats = chats;
  }

  /** Lists chats, the one with the newest message first. Throws Problem validation_failed for a bad cursor. */
  async list({ lineId }: InLine, query: ListQuery): Promise<{ chats: Listed[]; next: string | null }> {
    const { limit, q, wrote } = query;
    const isFound = q === null ? () => true : searchFor(q);
    const isMeant = (record: ChatRecord) => isFound(record) && (record.wrote || !wrote);
    const atOnce = q === null && !wrote ? limit + 1 : SEARCHED_AT_ONCE + 1;
    const read = await this.#records(lineId, query, atOnce);
    const found: ChatRecord[] = [];
    let examined = 0;
    for (const record of read.slice(0, atOnce - 1)) {
      if (found.length === limit) break;
      examined++;
      if (isMeant(record)) found.push(record);
    }
    const last = read[examined - 1];
    const next = last && examined < read.length ? `cur_${last.last}_${last.chat}` : null;
    return { chats: await this.#withNewest(lineId, found), next };
  }

  /** Throws Problem not_found. */
  async get(line: InLine, chat: string): Promise<Listed> {
    const [listed] = await this.#withNewest(line.lineId, [await this.#found(line, chat)]);
    return listed!;
  }

  /** Lists messages of a chat, newest first. Throws Problem not_found, validation_failed for a bad cursor. */
  async messages(
    line: InLine,
    chat: string,
    { limit, before, after }: MessagesQuery,
  ): Promise<{ entries: ChatEntry[]; next: string | null }> {
    const { parts } = await this.#found(line, chat);
    const end = before === null ? Infinity : await this.#orderOf(line, chat, { cursor: before, path: "before" });
    const start = after === null ? 0 : await this.#orderOf(line, chat, { cursor: after, path: "after" }) + 1;
    const rows = await this.#newestRows(line.lineId, parts, { start, end, limit: limit + 1 });
    const page = rows.slice(0, limit);
    const next = rows.length > limit ? `cur_${orderOf(page.at(-1)!)}` : null;
    return { entries: await this.#entries(page), next };
  }

  /** Lists the people with whom the line has a chat, by their addresses. */
  async people(
    { lineId }: InLine,
    { limit, after, q }: Pick<ListQuery, "limit" | "after" | "q">,
  ): Promise<{ people: ChatRecord[]; next: string | null }> {
    const isMeant = q === null ? () => true : searchFor(q);
    if (after !== null && !/^[\w.@-]{1,64}$/.test(after)) throw invalid("after", "is not the `next` of a page");
    const people: ChatRecord[] = [];
    const prefix = chatKeys.places(lineId);
    const range = { prefix, ...(after === null ? {} : { start: [...prefix, `${after}\0`] as Key }) };
    const places = await Array.fromAsync(this.#kv.list(range, { limit: SEARCHED_AT_ONCE }));
    let examined = 0;
    for (const { key, value } of places) {
      if (people.length === limit) break;
      examined++;
      const chat = String(key.at(-1));
      if ("same" in value || isGroup(chat)) continue;
      const { value: record } = await this.#kv.get(chatKeys.record(lineId, value.unread, value.last, chat));
      if (record && isMeant(record)) people.push(record);
    }
    const isEnd = examined === places.length && places.length < SEARCHED_AT_ONCE;
    return { people, next: isEnd ? null : String(places[examined - 1]!.key.at(-1)) };
  }

  /** Resolves to the names of these chats, without those that are not known. */
  async names(line: InLine, chats: readonly string[]): Promise<Map<string, string>> {
    const records = await Promise.all(chats.map((chat) => this.#chats.find(line, chatOf(chat))));
    return new Map(chats.flatMap((chat, i) => records[i]?.name ? [[chat, records[i].name]] : []));
  }

  /** Counts the line's chats with unread messages, up to `most`. */
  async countUnread(lineId: string, most: number): Promise<number> {
    const rows = this.#kv.list({ prefix: chatKeys.records(lineId, true) }, { limit: most });
    return (await Array.fromAsync(rows, ({ key }) => key)).length;
  }

  /** Keeps the name of a group. */
  async rename(line: InLine, chat: string, name: string): Promise<void> {
    await this.#chats.note(line, chat, { name });
  }

  async #found(line: InLine, chat: string): Promise<ChatRecord> {
    const record = await this.#chats.find(line, chatOf(chat));
    if (!record) throw notFound("chat");
    return record;
  }

  /** Reads records, those with unread messages and the others together, by their newest messages. */
  async #records(lineId: string, { after, unread }: ListQuery, limit: number): Promise<ChatRecord[]> {
    const cursor = after === null ? null : CHAT_CURSOR.exec(after);
    if (after !== null && !cursor) throw invalid("after", "is not the `next` of a page");
    const read = await Promise.all((unread ? [true] : [true, false]).map((flag) => {
      const prefix = chatKeys.records(lineId, flag);
      const end = cursor && chatKeys.record(lineId, flag, Number(cursor[1]), cursor[2]!);
      const range = { prefix, ...(end ? { end } : {}) };
      return Array.fromAsync(this.#kv.list(range, { limit, reverse: true }), ({ value }) => value);
    }));
    return read.flat().sort((a, b) => b.last - a.last || (a.chat < b.chat ? 1 : -1)).slice(0, limit);
  }

  async #withNewest(lineId: string, records: readonly ChatRecord[]): Promise<Listed[]> {
    // The newest message is at the order that the record names, under one of the person's addresses.
    const keys = records.map(({ parts, last }) => parts.map((part) => chatKeys.message(lineId, part, last)));
    const slots = await this.#kv.getMany(keys.flat());
    const rows = slots.flatMap(({ key, value, version }) => value ? [{ key, value, version: version! }] : []);
    const entries = await this.#entries(rows);
    return records.map((record) => {
      const newest = entries.find(({ order, part }) => order === record.last && record.parts.includes(part));
      return { record, newest: newest ?? null };
    });
  }

  async #newestRows(
    lineId: string,
    parts: readonly string[],
    { start, end, limit }: { start: number; end: number; limit: number },
  ): Promise<Row<ChatRow>[]> {
    const read = await Promise.all(parts.map((part) => {
      const range = {
        prefix: chatKeys.messages(lineId, part),
        ...(start > 0 ? { start: chatKeys.message(lineId, part, start) } : {}),
        ...(end < Infinity ? { end: chatKeys.message(lineId, part, end) } : {}),
      };
      return Array.fromAsync(this.#kv.list(range, { limit, reverse: true }));
    }));
    return read.flat().sort((a, b) => orderOf(b) - orderOf(a)).slice(0, limit);
  }

  /** Joins the rows with the messages of the gateway; leaves out what is no longer kept. */
  async #entries(rows: readonly Row<ChatRow>[]): Promise<(ChatEntry & { part: string })[]> {
    const ids = rows.flatMap(({ value }) => isSent(value) ? value.messageId : []);
    const sent = new Map(
      (await filled(this.#kv, await messagesOf(this.#kv, ids))).map((message) => [message.id, message]),
    );
    return rows.flatMap((at) => {
      const { value: row } = at;
      const message = isSent(row) ? sent.get(row.messageId) ?? null : null;
      if (isSent(row) && (!message || message.erasedAt !== undefined)) return [];
      return [{ order: orderOf(at), part: String(at.key.at(-2)), row, message }];
    });
  }

  async #orderOf(line: InLine, chat: string, { cursor, path }: { cursor: string; path: string }): Promise<number> {
    const [, order] = CURSOR.exec(cursor) ?? [];
    if (order !== undefined) return Number(order);
    const place = await placeOf({ kv: this.#kv, chats: this.#chats }, line, { chat, id: cursor });
    if (place) return place.order;
    throw invalid(path, "is neither the `next` of a page nor the id of a message of this chat");
  }
}

function orderOf({ key }: Pick<Row<ChatRow>, "key">): number {
  return Number(key.at(-1));
}

/** Returns the filter for chats with this in their name or number. */
function searchFor(q: string): (record: ChatRecord) => boolean {
  const words = q.trim().toLowerCase();
  const digits = partOfNumber(words);
  return ({ name, number, chat }) =>
    (name?.toLowerCase().includes(words) ?? false) ||
    (digits !== null && (number ?? chat).includes(digits)) || chat === words;
}
