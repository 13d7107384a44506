/**
 * The queue of a line: rows in the order of departure.
 * Truth is these rows (promise 7); whoever adds or takes them does so in the commit that changes the message.
 */
import type { Key, Kv, Row } from "../store/kv.ts";
import type { Message } from "./message.ts";
import { messageKeys, type QueueRow } from "./rows.ts";

/** Messages that are read at a time: with the longest texts some 6 MB. */
const AT_ONCE = 50;

/** Reads one line's queue. Rows of a bulk that is still being accepted do not count yet. */
export class LineQueue {
  readonly #kv: Kv;
  readonly #lineId: string;
  /** The last bulk found complete: a run of ten thousand rows asks once. */
  #complete: string | null = null;

  constructor(kv: Kv, lineId: string) {
    this.#kv = kv;
    this.#lineId = lineId;
  }

  /** The first `limit` messages, in the order of departure. */
  async first(limit: number): Promise<Message[]> {
    const rows: Row<QueueRow>[] = [];
    for await (const row of this.rows()) {
      rows.push(row);
      if (rows.length === limit) break;
    }
    const slots = await this.#kv.getMany(rows.map((row) => messageKeys.message(row.value.messageId)));
    return slots.flatMap((slot) => slot.value ?? []);
  }

  /** As `first`, some at a time: for whoever needs little of each. */
  async *each(limit: number): AsyncIterable<Message> {
    const keys: Key[] = [];
    let left = limit;
    for await (const row of this.rows()) {
      if (left-- === 0) break;
      keys.push(messageKeys.message(row.value.messageId));
      if (keys.length === AT_ONCE) yield* await this.#read(keys.splice(0));
    }
    yield* await this.#read(keys);
  }

  async #read(keys: readonly Key[]): Promise<Message[]> {
    return (await this.#kv.getMany<Message>(keys)).flatMap((slot) => slot.value ?? []);
  }

  /** The message that departs next; null when none waits. */
  async head(): Promise<Message | null> {
    for await (const row of this.rows()) {
      const message = (await this.#kv.get(messageKeys.message(row.value.messageId))).value;
      if (message) return message;
    }
    return null;
  }

  /** Every row that counts, in the order of departure. */
  async *rows(): AsyncIterable<Row<QueueRow>> {
    const incomplete = new Set<string>();
    for await (const row of this.#pages()) {
      const { bulkId } = row.value;
      if (bulkId !== null && bulkId !== this.#complete) {
        if (incomplete.has(bulkId)) continue;
        if ((await this.#kv.get(messageKeys.bulk(bulkId))).value === null) {
          incomplete.add(bulkId);
          continue;
        }
        this.#complete = bulkId;
      }
      yield row;
    }
  }

  /** The first row alone, then the rest: the head is asked for far more often than what follows. */
  async *#pages(): AsyncIterable<Row<QueueRow>> {
    const prefix = messageKeys.queueOfLine(this.#lineId);
    let last: Row<QueueRow> | null = null;
    for await (const row of this.#kv.list({ prefix }, { limit: 1 })) yield last = row;
    if (last === null) return;
    const after = messageKeys.queue(this.#lineId, (last.key[2] as number) + 1);
    yield* this.#kv.list({ prefix, start: after });
  }
}
