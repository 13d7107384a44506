/**
 * The history of an account: returns any page of a million messages, and totals, without reading all of them. Days and
 * statuses are counted in the commits that change the messages. Properties that never change have an index that is
 * updated later (`filter_index.ts`). A bulk is a range of history numbers.
 */
import { messageKeys } from "../rows.ts";
import { firstRow, type Kv } from "../../store/kv.ts";
import { sizeBound } from "../../store/limits.ts";
import type { MessageKind } from "../content.ts";
import { chatOf, type Message, type MessageStatus } from "../message.ts";
import { filled } from "../templates/filled.ts";
import { makeFilterIndex } from "./filter_index.ts";
import { ledgerOf, messageIds, messagesOf, neighbours, ownMessage, sequence } from "./ledger.ts";
import { countOf, newestIn, type NumberSet } from "./number_set.ts";
import { EndedStretches, StatusReader } from "./status_index.ts";

/** Size limit of the messages of a page, in memory. */
const PAGE_BYTES = 8 * 1024 ** 2;

/** Filters and paging; a filter that is null or absent matches everything. */
interface HistoryQuery {
  page: number;
  limit: number;
  status?: MessageStatus | null;
  /** Whole UTC days, `YYYY-MM-DD`, both included. */
  from?: string | null;
  to?: string | null;
  sessionId?: string | null;
  /** In the form that a send accepts. */
  recipient?: string | null;
  type?: MessageKind | null;
  tag?: string | null;
  bulkId?: string | null;
  /** Id of a message of the account; only messages accepted before it match. */
  before?: string | null;
}

interface HistoryPage {
  messages: Message[];
  total: number;
  /**
   * Set if long messages made the page shorter than its limit: the `before` with which to get the messages that follow.
   */
  next?: string;
}

/** A range of history numbers, both ends included; empty if `last` is before `first`. */
interface Stretch {
  first: number;
  last: number;
}

const NOTHING: Stretch = { first: 1, last: 0 };

/** A page of history numbers, newest first, and their number on all pages. */
interface Found {
  numbers: number[];
  total: number;
}

export class History {
  readonly #kv: Kv;
  readonly #ended = new EndedStretches();
  readonly #filters: ReturnType<typeof makeFilterIndex>;

  constructor(kv: Kv) {
    this.#kv = kv;
    this.#filters = makeFilterIndex(kv);
  }

  /** Returns a page of messages, newest first. Throws Problem not_found for an unknown `before`. */
  async page(accountId: string, query: HistoryQuery): Promise<HistoryPage> {
    const kv = this.#kv;
    const { status = null, sessionId = null, recipient = null, type = null, tag = null } = query;
    const facets = { session: sessionId, recipient: recipient === null ? null : chatOf(recipient), type, tag };
    const isFiltered = Object.values(facets).some((value) => value !== null);
    if (isFiltered) await this.#filters.catchUp(accountId);
    const [ledger, { value: floor }] = await Promise.all([
      ledgerOf(kv, accountId),
      kv.get(messageKeys.historyFloor(accountId)),
    ]);
    const all = { first: (floor ?? 0) + 1, last: ledger.messages };
    const range = await this.#rangeOf(accountId, query, { all, lastDay: ledger.usage.day });
    const reader = status &&
      new StatusReader({ kv, ended: this.#ended }, { accountId, status, messages: ledger.messages });
    const { numbers, total } = isFiltered
      ? await pageOfFacets(await this.#filters.find(accountId, facets, range), reader, query)
      : await pageOfStatus(reader, range, query);

    const ids = await messageIds(kv, { accountId, ledger }, numbers.toReversed());
    const isDense = numbers.length > 0 && numbers[0]! - numbers.at(-1)! < 2 * numbers.length;
    const read = isDense ? await neighbours(kv, ids) : await messagesOf(kv, ids);
    // A message's status may have changed since the index was read.
    const found = read.filter((message) => status === null || message.status === status).reverse();
    const messages = fitting(await filled(kv, found));
    const next = messages.at(-1)?.id;
    return { messages, total, ...(next && messages.length < found.length ? { next } : {}) };
  }

  /** Returns the message. Throws Problem not_found, also for another account's message. */
  async get(accountId: string, messageId: string): Promise<Message> {
    const { value } = await ownMessage(this.#kv, accountId, messageId);
    return (await filled(this.#kv, [value]))[0]!;
  }

  /** Returns the ids of the messages with this tag that have not ended, oldest first. */
  async waitingWith(accountId: string, tag: string): Promise<string[]> {
    const kv = this.#kv;
    await this.#filters.catchUp(accountId);
    const [ledger, { value: floor }] = await Promise.all([
      ledgerOf(kv, accountId),
      kv.get(messageKeys.historyFloor(accountId)),
    ]);
    const range = { first: (floor ?? 0) + 1, last: ledger.messages };
    const numbers = new Set<number>();
    for (const status of ["queued", "processing"] as const) {
      const reader = new StatusReader({ kv, ended: this.#ended }, { accountId, status, messages: ledger.messages });
      for (const set of await this.#filters.find(accountId, { tag }, range)) {
        await reader.keep(set);
        for (const number of newestIn(set, { skip: 0, limit: countOf(set.bits) })) numbers.add(number);
      }
    }
    return await messageIds(kv, { accountId, ledger }, [...numbers].sort((a, b) => a - b));
  }

  /** Returns a page of the ids of the account's bulks, newest first, and their number on all pages. */
  async bulkIds(
    accountId: string,
    { page, limit }: { page: number; limit: number },
  ): Promise<{ ids: string[]; total: number }> {
    const ids: string[] = [];
    let total = 0;
    for await (const { key } of this.#kv.list({ prefix: messageKeys.bulksOfAccount(accountId) }, { reverse: true })) {
      if (Math.floor(total++ / limit) === page - 1) ids.push(String(key.at(-1)));
    }
    return { ids, total };
  }

  /** Returns the range of history numbers that days, bulk and `before` select. */
  async #rangeOf(
    accountId: string,
    { from = null, to = null, bulkId = null, before = null }: HistoryQuery,
    { all, lastDay }: { all: Stretch; lastDay: string },
  ): Promise<Stretch> {
    const [mark, beforeFrom, throughTo, bulk] = await Promise.all([
      before === null ? null : this.get(accountId, before),
      from === null ? 0 : this.#acceptedBefore(accountId, from, lastDay),
      // "~" sorts after every character of a day, so this counts up to the first day after `to`.
      to === null ? null : this.#acceptedBefore(accountId, `${to}~`, lastDay),
      bulkId === null ? null : this.#kv.get(messageKeys.bulk(bulkId)),
    ]);
    const days = {
      first: Math.max(all.first, (beforeFrom ?? all.last) + 1),
      last: Math.min(throughTo ?? all.last, all.last, (mark?.historyNumber ?? Infinity) - 1),
    };
    if (bulk === null) return days;
    if (bulk.value?.accountId !== accountId) return NOTHING;
    const { firstHistoryNumber, total } = bulk.value;
    return {
      first: Math.max(days.first, firstHistoryNumber),
      last: Math.min(days.last, firstHistoryNumber + total - 1),
    };
  }

  /**
   * Returns how many messages were accepted before the first day that sorts at or after `day`; null if there is no such
   * day. Ignores days after `lastDay`, which come from a wrong clock.
   */
  async #acceptedBefore(accountId: string, day: string, lastDay: string): Promise<number | null> {
    if (day > lastDay) return null;
    const range = {
      prefix: messageKeys.historyDays(accountId),
      start: messageKeys.historyDay(accountId, day),
      end: messageKeys.historyDay(accountId, `${lastDay}~`),
    };
    const first = await firstRow(this.#kv, range);
    return first && first.value - 1;
  }
}

/** Returns one page of the range's messages with the status, newest first. Ranks in the status index locate it. */
async function pageOfStatus(
  reader: StatusReader | null,
  range: Stretch,
  { page, limit }: HistoryQuery,
): Promise<Found> {
  const before = Math.max(0, Math.min(range.first - 1, range.last));
  // Without a status, a message's rank among all is its history number.
  const [oldest, newest] = reader
    ? await Promise.all([reader.rank(before), reader.rank(Math.max(0, range.last))])
    : [before, Math.max(0, range.last)];
  const last = newest - (page - 1) * limit;
  const first = Math.max(oldest + 1, last - limit + 1);
  const numbers = reader ? await reader.select(first, last) : sequence(first, last);
  return { numbers: numbers.reverse(), total: newest - oldest };
}

/** Returns one page of the messages in the sets with the status, newest first. */
async function pageOfFacets(
  sets: readonly NumberSet[],
  reader: StatusReader | null,
  { page, limit }: HistoryQuery,
): Promise<Found> {
  await Promise.all(sets.map((set) => reader?.keep(set)));
  const counted = sets.map((set) => ({ set, count: countOf(set.bits) }));
  let skip = (page - 1) * limit;
  const numbers: number[] = [];
  for (const { set, count } of counted.toReversed()) {
    if (skip < count && numbers.length < limit) {
      numbers.push(...newestIn(set, { skip, limit: limit - numbers.length }));
    }
    skip = Math.max(0, skip - count);
  }
  return { numbers, total: counted.reduce((total, { count }) => total + count, 0) };
}

/** Returns the first messages that fit on a page, at least one. */
function fitting(messages: readonly Message[]): Message[] {
  let bytes = 0;
  const end = messages.findIndex(({ content, manner }, i) =>
    (bytes += sizeBound(content) + sizeBound(manner)) > PAGE_BYTES && i > 0
  );
  return messages.slice(0, end < 0 ? messages.length : end);
}
