/**
 * Reads a line's waiting messages in the order of departure.
 *
 * The message is the truth (promise 7): a queue row is valid only if its message waits at exactly that place, and a row
 * left over from a race is dropped when it is read.
 */
import { batchesOf } from "../../base/batches.ts";
import { Change, isRow, type Kv, type PrefixOf, type Row, type Slot } from "../../store/kv.ts";
import { type Message, PRIORITIES } from "../message.ts";
import { type Lane, LANES, messageKeys, type QueueRow } from "../rows.ts";
import { incompleteChats } from "./chat_order.ts";
import { chatKeyOf, isPlaceOf, keyAfter, positionOf, waitingSince } from "./place.ts";

/** Messages read at once: about 6 MB with the longest texts. */
const READ_AT_ONCE = 50;
/** Enough for the head, and the message on its way before it. */
const FIRST_ROWS = 2;

/** Reads one line's queue. Rows of a bulk that is still being accepted do not count yet. */
export class LineQueue {
  readonly #kv: Kv;
  readonly #lineId: string;
  /** The last bulk found complete, so that a run of ten thousand rows reads its row once. */
  #complete: string | null = null;

  constructor(kv: Kv, lineId: string) {
    this.#kv = kv;
    this.#lineId = lineId;
  }

  /**
   * Yields up to `limit` messages: the queue in the order of departure, then the scheduled and the proposed
   * ones. Reads them in batches.
   */
  async *each(limit: number): AsyncIterable<Message> {
    for await (const rows of batchesOf(this.#first(limit), READ_AT_ONCE)) yield* await this.#read(rows);
  }

  /** Returns the ids of messages to these chats, scheduled and proposed ones included. */
  async idsFor(chats: ReadonlySet<string>): Promise<string[]> {
    const prefixes = [...chats].map((chat) => messageKeys.queueOfChat(this.#lineId, chat));
    const ids = new Set<string>();
    const collect = async (rows: AsyncIterable<Row<QueueRow>>) => {
      for await (const { value } of this.#counting(rows)) if (chats.has(value.chat)) ids.add(value.messageId);
    };
    // First those that may have no row by chat yet: they get one at any moment.
    await collect(incompleteChats(this.#kv, this.#lineId));
    const others = [messageKeys.scheduleOfLine(this.#lineId), messageKeys.proposalsOfLine(this.#lineId)];
    for (const prefix of [...prefixes, ...others]) {
      await collect(this.#kv.list({ prefix }));
    }
    return [...ids];
  }

  /** Returns how many messages wait, without scheduled and proposed ones. */
  async size(): Promise<number> {
    let size = 0;
    for await (const _ of this.#counting(this.#kv.list({ prefix: messageKeys.queueOfLine(this.#lineId) }))) size++;
    return size;
  }

  /** Returns since when the oldest of these messages waits, Unix ms; null if there is none. */
  async oldestSince(): Promise<number | null> {
    const oldest = await this.oldest(new Set(LANES), null);
    return oldest && waitingSince(positionOf(oldest));
  }

  /** Returns the row in these lanes that has waited longest, except that of the message `behind`. */
  async oldest(lanes: ReadonlySet<Lane>, behind: string | null): Promise<Row<QueueRow> | null> {
    const heads = await Promise.all(
      PRIORITIES.flatMap((priority) =>
        [...lanes].map((lane) => this.firstOf(messageKeys.queueLane(this.#lineId, priority, lane), behind))
      ),
    );
    return heads.reduce((a, b) => a && b ? (positionOf(b) < positionOf(a) ? b : a) : a ?? b, null);
  }

  /**
   * Returns the first row that counts, except that of the message `behind`. `read` is the
   * result of `firstRows`, if known.
   */
  async firstOf(
    prefix: PrefixOf<QueueRow>,
    behind: string | null,
    read?: readonly Row<QueueRow>[],
  ): Promise<Row<QueueRow> | null> {
    // Reads few rows first: the head is needed far more often than what follows it.
    const few = behind === null ? 1 : FIRST_ROWS;
    const rows = read ?? await this.#list(prefix, few);
    for (const row of rows) if (row.value.messageId !== behind && await this.counts(row)) return row;
    if (rows.length < few) return null;
    for await (const row of this.#counting(this.#kv.list({ prefix, start: keyAfter(rows.at(-1)!.key) }))) {
      if (row.value.messageId !== behind) return row;
    }
    return null;
  }

  /** Returns the first two rows, whether they count or not. */
  firstRows(prefix: PrefixOf<QueueRow>): Promise<Row<QueueRow>[]> {
    return this.#list(prefix, FIRST_ROWS);
  }

  /** Returns whether the row counts: its bulk, if it has one, has been accepted completely. */
  async counts({ value: { bulkId } }: Row<QueueRow>): Promise<boolean> {
    if (bulkId === null || bulkId === this.#complete) return true;
    if ((await this.#kv.get(messageKeys.bulk(bulkId))).value === null) return false;
    this.#complete = bulkId;
    return true;
  }

  /** Returns the message that waits at this row. If there is none, removes the row and returns null. */
  async messageAt(row: Row<QueueRow>): Promise<Row<Message> | null> {
    const slot = await this.#kv.get(messageKeys.message(row.value.messageId));
    if (isRow(slot) && isPlaceOf(row.key, slot.value)) return slot;
    await this.#removeStale(row, slot);
    return null;
  }

  /** Like `messageAt`, for several rows. */
  async #read(rows: readonly Row<QueueRow>[]): Promise<Message[]> {
    const slots = await this.#kv.getMany(rows.map((row) => messageKeys.message(row.value.messageId)));
    const isStale = rows.map(({ key }, i) => !slots[i]!.value || !isPlaceOf(key, slots[i]!.value));
    await Promise.all(rows.map((row, i) => isStale[i] && this.#removeStale(row, slots[i]!)));
    return slots.flatMap(({ value }, i) => value && !isStale[i] ? value : []);
  }

  /** Removes a row that a race left over, and its row by chat, unless either has become the message's place since. */
  async #removeStale(row: Row<QueueRow>, slot: Slot<Message>): Promise<void> {
    const change = new Change().check(row).check(slot).delete(row.key);
    const chatKey = row.key[0] === "queue" ? chatKeyOf(row) : null;
    if (chatKey && !(slot.value && isPlaceOf(chatKey, slot.value))) change.delete(chatKey);
    await this.#kv.commit(change);
  }

  async *#first(limit: number): AsyncGenerator<Row<QueueRow>> {
    let left = limit;
    const families = [messageKeys.queueOfLine, messageKeys.scheduleOfLine, messageKeys.proposalsOfLine];
    for (const prefix of families.map((of) => of(this.#lineId))) {
      for await (const row of this.#counting(this.#kv.list({ prefix }))) {
        if (left-- === 0) return;
        yield row;
      }
    }
  }

  async *#counting(rows: AsyncIterable<Row<QueueRow>>): AsyncIterable<Row<QueueRow>> {
    const incomplete = new Set<string>();
    for await (const row of rows) {
      const { bulkId } = row.value;
      if (bulkId !== null && incomplete.has(bulkId)) continue;
      if (await this.counts(row)) yield row;
      else incomplete.add(bulkId!);
    }
  }

  #list(prefix: PrefixOf<QueueRow>, limit: number): Promise<Row<QueueRow>[]> {
    return Array.fromAsync(this.#kv.list({ prefix }, { limit }));
  }
}
