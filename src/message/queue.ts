/**
 * The queue of a line: rows in the order of departure, by chat, and by due time (docs/decisions/0014-order-of-the-queue.md).
 *
 * Truth is the message (promise 7): a row counts when its message waits at that very place. So whoever moves rows need
 * not check them; what a race leaves is dropped when it is met. The head costs a few reads whatever waits behind it.
 */
import { unhurried } from "../base/unhurried.ts";
import type { Clock } from "../runtime.ts";
import { Change, isRow, type Key, type Kv, prefix, type PrefixOf, type Row } from "../store/kv.ts";
import { addTurn, waitingSince } from "./enqueue.ts";
import { chatOf, hasEnded, type Message, PRIORITIES, type Priority } from "./message.ts";
import type { MessageRow } from "./record.ts";
import { type Lane, LANES, messageKeys, type QueueRow } from "./rows.ts";

/** Rows that one commit moves. */
const MOVED_AT_ONCE = 100;

/** What the line may send now. */
interface Choice {
  /** In which lane messages to the chat stand now; what is `held` may not leave. */
  laneOf(chat: string): Lane | Promise<Lane>;
  /** What began to wait before this time (Unix ms) departs first, the oldest before all, whatever its priority; or null. */
  oldestBefore: number | null;
  /** The message that is on its way, behind which this one goes; null when there is none. */
  behind: string | null;
}

/** Messages that are read at a time: with the longest texts some 6 MB. */
const READ_AT_ONCE = 50;
/** The head, and the one that is on its way before it. */
const FIRST_ROWS = 2;
/** Rows that are read ahead while a line departs without pauses. */
const ROWS_AHEAD = 16;

/** Reads one line's queue. Rows of a bulk that is still being accepted do not count yet. */
export class LineQueue {
  readonly #kv: Kv;
  readonly #lineId: string;
  /** The last bulk found complete: a run of ten thousand rows asks once. */
  #complete: string | null = null;
  /** Nothing waits since before this time, Unix ms, as was last found: what comes waits since later. */
  #nothingBefore = 0;
  /** What follows the message that was given last, in a queue that only departures have changed since it was read. */
  #ahead: Row<QueueRow>[] = [];
  /**
   * Whether reading ahead is worth it: `calm` once nothing but departures has changed the queue since it was last asked,
   * `mixed` when more than one lane was found in it.
   */
  #state: "changed" | "calm" | "mixed" = "changed";
  /** The only message of the queue, as was found since it was last changed. */
  #only: string | null = null;
  #isEmpty = false;

  constructor(kv: Kv, lineId: string) {
    this.#kv = kv;
    this.#lineId = lineId;
  }

  /** Whether the last look found no row, and nothing has changed since. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  /** The first `limit` messages in the order of departure, then those whose time has not come. */
  async first(limit: number): Promise<Message[]> {
    return await Array.fromAsync(this.each(limit));
  }

  /** As `first`, some at a time: for whoever needs little of each. */
  async *each(limit: number): AsyncIterable<Message> {
    let left = limit;
    for (const prefix of [messageKeys.queueOfLine(this.#lineId), messageKeys.scheduleOfLine(this.#lineId)]) {
      let rows: Row<QueueRow>[] = [];
      for await (const row of this.#counting({ prefix })) {
        if (left === 0) break;
        left--;
        rows.push(row);
        if (rows.length < READ_AT_ONCE) continue;
        yield* await this.#read(rows);
        rows = [];
      }
      yield* await this.#read(rows);
    }
  }

  /** The messages of the rows; rows that do not count any more go. */
  async #read(rows: readonly Row<QueueRow>[]): Promise<Message[]> {
    if (rows.length === 0) return [];
    const slots = await this.#kv.getMany(rows.map((row) => messageKeys.message(row.value.messageId)));
    const left = new Change();
    const messages = slots.flatMap(({ value }, i) => {
      if (value && isPlaceOf(rows[i]!.key, value)) return value;
      left.delete(rows[i]!.key);
      return [];
    });
    if (left.mutations.length > 0) await this.#kv.commit(left);
    return messages;
  }

  /** Something other than a departure has changed the queue, or may have. */
  changed(): void {
    this.#ahead = [];
    this.#state = "changed";
    this.#only = null;
    this.#isEmpty = false;
  }

  /** The message that departs next; null when none may. */
  async next(choice: Choice): Promise<MessageRow | null> {
    if (choice.behind !== null && choice.behind === this.#only) return null;
    const following = await this.#following(choice);
    if (following) return following;
    const lanes = new Set(LANES);
    for (;;) {
      const head = await this.#head(lanes, choice);
      if (!head) return null;
      const row = head.value.messageId === this.#only ? head : await this.#oldest(lanes, choice) ?? head;
      if (laneAt(row) === "held" && await choice.laneOf(row.value.chat) === "held") {
        lanes.delete("held");
        continue;
      }
      const message = await this.#departing(row, choice);
      if (message) return message;
    }
  }

  /** The message that departs behind another, from rows that were read ahead; null where they do not tell. */
  async #following({ behind, laneOf }: Choice): Promise<MessageRow | null> {
    if (behind === null) this.changed();
    if (behind === null || this.#state === "mixed") return null;
    if (this.#state === "changed") {
      this.#state = "calm";
      return null;
    }
    if (this.#ahead.length === 0) await this.#readAhead(behind);
    const row = this.#ahead.shift();
    if (!row) return null;
    const lane = laneAt(row);
    if (await this.#counts(row) && await laneOf(row.value.chat) === lane) {
      const slot = await this.#kv.get(messageKeys.message(row.value.messageId));
      if (isRow(slot) && isPlaceOf(row.key, slot.value)) return { ...slot, lane };
    }
    this.changed();
    return null;
  }

  /**
   * Reads the first rows, if the whole queue is of one lane: there every chat has its messages in the order of the queue,
   * and the first has waited longest.
   */
  async #readAhead(behind: string): Promise<void> {
    const prefix = messageKeys.queueOfLine(this.#lineId);
    const rows = await Array.fromAsync(this.#kv.list({ prefix }, { limit: ROWS_AHEAD }));
    const [last] = rows.length < ROWS_AHEAD
      ? rows.slice(-1)
      : await Array.fromAsync(this.#kv.list({ prefix }, { limit: 1, reverse: true }));
    if (last && isSameLane(rows[0]!, last)) this.#ahead = rows.filter(({ value }) => value.messageId !== behind);
    else this.#state = "mixed";
  }

  /** How many wait, those that are scheduled aside. */
  async size(): Promise<number> {
    let size = 0;
    for await (const _ of this.#counting({ prefix: messageKeys.queueOfLine(this.#lineId) })) size++;
    return size;
  }

  /** Since when the oldest of them waits, Unix ms; null when none does. */
  async oldestSince(): Promise<number | null> {
    const oldest = await this.#oldest(new Set(LANES), { oldestBefore: Infinity, behind: null });
    return oldest && waitingSince(positionOf(oldest));
  }

  /**
   * Puts messages whose time has come into the queue, some at a time; resolves to when the next is due, Unix ms: that may
   * have passed. Null when none is scheduled.
   */
  async release(now: number, laneOf: Choice["laneOf"]): Promise<number | null> {
    const prefix = messageKeys.scheduleOfLine(this.#lineId);
    const first = await this.#firstDue(prefix);
    if (first === null || first > now) return first;
    const rows = await Array.fromAsync(this.#kv.list({ prefix }, { limit: MOVED_AT_ONCE }));
    const due = rows.filter((row) => dueAt(row) <= now);
    if (due.length > 0) {
      const slots = await this.#kv.getMany(due.map((row) => messageKeys.message(row.value.messageId)));
      const change = new Change();
      for (const [i, { key, value: { chat } }] of due.entries()) {
        const message = slots[i]!.value;
        change.delete(key);
        if (message && isPlaceOf(key, message)) addTurn(change, message, await laneOf(chat));
      }
      await this.#kv.commit(change);
    }
    const next = rows[due.length];
    if (next) return dueAt(next);
    return rows.length < MOVED_AT_ONCE ? null : now;
  }

  async #firstDue(prefix: PrefixOf<QueueRow>): Promise<number | null> {
    for await (const row of this.#kv.list({ prefix }, { limit: 1 })) return dueAt(row);
    return null;
  }

  /** Moves what waits for the chat to the lane: to the replies when it wrote, out of the held when it is new no longer. */
  async moveChat(chat: string, lane: Lane): Promise<void> {
    const rows = await Array.fromAsync(this.#kv.list({ prefix: messageKeys.queueOfChat(this.#lineId, chat) }));
    for (let at = 0; at < rows.length; at += MOVED_AT_ONCE) {
      const some = rows.slice(at, at + MOVED_AT_ONCE);
      const slots = await this.#kv.getMany(some.map((row) => messageKeys.message(row.value.messageId)));
      const change = new Change();
      for (const { value } of slots) if (value && !hasEnded(value)) this.#toLane(change, value, lane);
      if (change.mutations.length > 0) await this.#kv.commit(change);
    }
  }

  /** Where the queue of each priority ends now, for `sortIn`. */
  async ends(): Promise<Map<Priority, Key | null>> {
    const last = async (priority: Priority) => {
      const prefix = messageKeys.queueLane(this.#lineId, priority, "cold");
      for await (const { key } of this.#kv.list({ prefix }, { limit: 1, reverse: true })) return key;
      return null;
    };
    return new Map(await Promise.all(PRIORITIES.map(async (priority) => [priority, await last(priority)] as const)));
  }

  /**
   * Moves what was accepted after `ends` for chats that wrote lately to the replies, and moves the ends on. A message that
   * waits alone passes nobody: it stays, and is met again should others come.
   */
  async sortIn(
    ends: Map<Priority, Key | null>,
    { laneOf, clock }: Pick<Choice, "laneOf"> & { clock: Clock },
  ): Promise<void> {
    if ((await this.#firstRows(messageKeys.queueOfLine(this.#lineId), FIRST_ROWS)).length < FIRST_ROWS) return;
    for (const [priority, end] of ends) {
      const prefix = messageKeys.queueLane(this.#lineId, priority, "cold");
      const range = { prefix, ...(end === null ? {} : { start: after(end) }) };
      const replies: Row<QueueRow>[] = [];
      // Of a bulk there are thousands.
      for await (const row of unhurried(this.#kv.list(range), clock)) {
        ends.set(priority, row.key);
        if (await laneOf(row.value.chat) === "reply") replies.push(row);
      }
      await this.#move(replies, "reply");
    }
  }

  /** The first row of these lanes in the order of departure. */
  async #head(lanes: ReadonlySet<Lane>, { behind }: Pick<Choice, "behind">): Promise<Row<QueueRow> | null> {
    if (lanes.size === LANES.length) {
      const prefix = messageKeys.queueOfLine(this.#lineId);
      const rows = await this.#firstRows(prefix, FIRST_ROWS);
      if (behind === null && rows.length === 1) this.#only = rows[0]!.value.messageId;
      this.#isEmpty = rows.length === 0;
      return await this.#firstOf(prefix, behind, rows);
    }
    for (const priority of PRIORITIES) {
      for (const lane of lanes) {
        const row = await this.#firstOf(messageKeys.queueLane(this.#lineId, priority, lane), behind);
        if (row) return row;
      }
    }
    return null;
  }

  async #oldest(
    lanes: ReadonlySet<Lane>,
    { oldestBefore, behind }: Pick<Choice, "oldestBefore" | "behind">,
  ): Promise<Row<QueueRow> | null> {
    if (oldestBefore === null || oldestBefore < this.#nothingBefore) return null;
    const heads = await Promise.all(
      PRIORITIES.flatMap((priority) =>
        [...lanes].map((lane) => this.#firstOf(messageKeys.queueLane(this.#lineId, priority, lane), behind))
      ),
    );
    const oldest = heads.reduce((a, b) => a && b ? (positionOf(b) < positionOf(a) ? b : a) : a ?? b, null);
    if (!oldest) return null;
    const since = waitingSince(positionOf(oldest));
    if (lanes.size === LANES.length) this.#nothingBefore = since;
    return since <= oldestBefore ? oldest : null;
  }

  /** What departs on this row: the first message of its chat. Null when the row had to be moved. */
  async #departing(row: Row<QueueRow>, { laneOf, behind }: Choice): Promise<MessageRow | null> {
    const { messageId, chat } = row.value;
    const lane = await laneOf(chat);
    const stands = laneAt(row);
    if (lane === "held") {
      await this.#holdBack(row, laneOf);
      return null;
    }
    // A chat whose first message could not leave is new no longer, or it is again one to which the line writes unasked.
    if (lane !== stands && (stands === "reply" || lane === "reply") && messageId !== this.#only) {
      await this.#move([row], lane);
      return null;
    }
    const found = await this.#messageAt(row);
    const own = found && { ...found, lane: stands };
    if (!own || messageId === this.#only) return own;
    for (;;) {
      const first = await this.#firstOf(messageKeys.queueOfChat(this.#lineId, chat), behind);
      if (!first || first.value.messageId === messageId) return own;
      const message = await this.#messageAt(first);
      if (message) return message;
    }
  }

  /** The message that waits on this row; a row that does not count any more goes. */
  async #messageAt({ key, value: { messageId } }: Row<QueueRow>): Promise<Row<Message> | null> {
    const slot = await this.#kv.get(messageKeys.message(messageId));
    if (isRow(slot) && isPlaceOf(key, slot.value)) return slot;
    await this.#kv.commit(new Change().delete(key));
    return null;
  }

  /** Moves messages to new chats, from this row on, out of the way of those that may leave. */
  async #holdBack(row: Row<QueueRow>, laneOf: Choice["laneOf"]): Promise<void> {
    const lane = prefix<QueueRow>(...row.key.slice(0, 4));
    const held: Row<QueueRow>[] = [];
    for await (const next of this.#kv.list({ prefix: lane, start: row.key }, { limit: MOVED_AT_ONCE })) {
      if (await laneOf(next.value.chat) === "held") held.push(next);
    }
    await this.#move(held, "held");
  }

  async #move(rows: readonly Row<QueueRow>[], lane: Lane): Promise<void> {
    for (let at = 0; at < rows.length; at += MOVED_AT_ONCE) {
      const change = new Change();
      for (const { key, value } of rows.slice(at, at + MOVED_AT_ONCE)) {
        const [family, lineId, priority, , ...place] = key;
        change.delete(key).set([family!, lineId!, priority!, LANES.indexOf(lane), ...place], value);
      }
      await this.#kv.commit(change);
    }
  }

  #toLane(change: Change, message: Message, lane: Lane): void {
    const { id, sessionId, priority, to, bulkId } = message;
    for (const other of LANES) {
      if (other !== lane) change.delete(messageKeys.queue(sessionId, priority, other, message));
    }
    change.set(messageKeys.queue(sessionId, priority, lane, message), { messageId: id, chat: chatOf(to), bulkId });
  }

  /** The first row that counts, the one of the message that is on its way aside. */
  async #firstOf(
    prefix: PrefixOf<QueueRow>,
    behind: string | null,
    read?: readonly Row<QueueRow>[],
  ): Promise<Row<QueueRow> | null> {
    // A few, then the rest: the head is asked for far more often than what follows.
    const few = behind === null ? 1 : FIRST_ROWS;
    const rows = read ?? await this.#firstRows(prefix, few);
    for (const row of rows) if (row.value.messageId !== behind && await this.#counts(row)) return row;
    if (rows.length < few) return null;
    for await (const row of this.#counting({ prefix, start: after(rows.at(-1)!.key) })) {
      if (row.value.messageId !== behind) return row;
    }
    return null;
  }

  #firstRows(prefix: PrefixOf<QueueRow>, limit: number): Promise<Row<QueueRow>[]> {
    return Array.fromAsync(this.#kv.list({ prefix }, { limit }));
  }

  async *#counting(range: { prefix: PrefixOf<QueueRow>; start?: Key }): AsyncIterable<Row<QueueRow>> {
    const incomplete = new Set<string>();
    for await (const row of this.#kv.list(range)) {
      const { bulkId } = row.value;
      if (bulkId !== null && incomplete.has(bulkId)) continue;
      if (await this.#counts(row)) yield row;
      else incomplete.add(bulkId!);
    }
  }

  async #counts({ value: { bulkId } }: Row<QueueRow>): Promise<boolean> {
    if (bulkId === null || bulkId === this.#complete) return true;
    if ((await this.#kv.get(messageKeys.bulk(bulkId))).value === null) return false;
    this.#complete = bulkId;
    return true;
  }
}

/** Whether the row at this key is where the message waits. */
function isPlaceOf(key: Key, message: Message): boolean {
  if (hasEnded(message)) return false;
  const lane = key[0] === "queue" ? laneAt({ key }) : "cold";
  const { sessionId, priority, sendAt, historyNumber, to } = message;
  const place = key[0] === "queue"
    ? messageKeys.queue(sessionId, priority, lane, message)
    : key[0] === "schedule"
    ? messageKeys.schedule(sessionId, sendAt ?? 0, historyNumber)
    : messageKeys.chatQueue(sessionId, chatOf(to), message);
  return place.every((part, i) => part === key[i]);
}

/** Of the same priority, too. */
function isSameLane(one: Row<QueueRow>, other: Row<QueueRow>): boolean {
  return one.key[2] === other.key[2] && one.key[3] === other.key[3];
}

function laneAt({ key }: Pick<Row<QueueRow>, "key">): Lane {
  return LANES[Number(key[3])]!;
}

function dueAt({ key }: Row<QueueRow>): number {
  return Number(key[2]);
}

function positionOf({ key }: Row<QueueRow>): number {
  return Number(key[4]);
}

/** The key just past this one, whose last part is a whole number. */
function after(key: Key): Key {
  return [...key.slice(0, -1), Number(key.at(-1)) + 1];
}
