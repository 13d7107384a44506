/**
 * The head of a line's queue: the message that departs next. Finding it takes a few reads, however long the queue is
 * (docs/decisions/0014-order-of-the-queue.md), and fewer while only departures change the queue
 * (docs/decisions/0021-ahead-of-a-departure.md).
 */
import { firstRow, isRow, type Kv, type Row } from "../../store/kv.ts";
import { PRIORITIES } from "../message.ts";
import type { MessageRow } from "../record.ts";
import { type Lane, LANES, messageKeys, type QueueRow } from "../rows.ts";
import { completeChats, type LineOfAccount } from "./chat_order.ts";
import { type LaneOf, Lanes } from "./lanes.ts";
import { isPlaceOf, isSameLane, laneAt, positionOf, waitingSince } from "./place.ts";
import { LineQueue } from "./queue.ts";

/** What decides which message departs next. */
interface Choice {
  laneOf: LaneOf;
  /** If set: the oldest message departs first, whatever its priority, if it began to wait before this time, Unix ms. */
  oldestBefore: number | null;
  /** The id of the message that is on its way, to choose the one behind it; null if there is none. */
  behind: string | null;
}

/** Rows that are read ahead while a line sends without pauses. */
const ROWS_AHEAD = 16;

export class QueueHead {
  readonly #kv: Kv;
  readonly #line: LineOfAccount;
  readonly #queue: LineQueue;
  readonly #lanes: Lanes;
  /** No message has waited since before this time, Unix ms, when last checked; later ones began to wait later. */
  #nothingBefore = 0;
  /** Rows read ahead that follow the message last returned; valid while only departures change the queue. */
  #ahead: Row<QueueRow>[] = [];
  /**
   * Whether reading ahead is worthwhile: `calm` if only departures have changed the queue since the last call, `mixed`
   * if the queue was found to have more than one lane.
   */
  #state: "changed" | "calm" | "mixed" = "changed";
  /** The id of the queue's only message, if it had only one when last read and has not changed since. */
  #only: string | null = null;
  #isEmpty = false;

  constructor(kv: Kv, line: LineOfAccount) {
    this.#kv = kv;
    this.#line = line;
    this.#queue = new LineQueue(kv, line.lineId);
    this.#lanes = new Lanes(kv, line.lineId);
  }

  /** Whether the queue was empty when last read and has not changed since. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  /** Discards what was read: something other than a departure may have changed the queue. */
  changed(): void {
    this.#ahead = [];
    this.#state = "changed";
    this.#only = null;
    this.#isEmpty = false;
  }

  /** Returns the message that departs next; null if none may leave. */
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

  /**
   * Returns the message that departs behind another, from rows read ahead; null if the queue has to be read instead.
   */
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
    if (await this.#queue.counts(row) && await laneOf(row.value.chat) === lane) {
      const slot = await this.#kv.get(messageKeys.message(row.value.messageId));
      if (isRow(slot) && isPlaceOf(row.key, slot.value)) return { ...slot, lane };
    }
    this.changed();
    return null;
  }

  /**
   * Reads the first rows ahead, if the whole queue is in one lane: every chat's messages are then in the order of the
   * queue, and the first row has waited longest.
   */
  async #readAhead(behind: string): Promise<void> {
    const prefix = messageKeys.queueOfLine(this.#line.lineId);
    const rows = await Array.fromAsync(this.#kv.list({ prefix }, { limit: ROWS_AHEAD }));
    const [last] = rows.length < ROWS_AHEAD
      ? rows.slice(-1)
      : await Array.fromAsync(this.#kv.list({ prefix }, { limit: 1, reverse: true }));
    if (last && isSameLane(rows[0]!, last)) this.#ahead = rows.filter(({ value }) => value.messageId !== behind);
    else this.#state = "mixed";
  }

  /** Returns the first row of these lanes in the order of departure. */
  async #head(lanes: ReadonlySet<Lane>, { behind }: Pick<Choice, "behind">): Promise<Row<QueueRow> | null> {
    if (lanes.size === LANES.length) {
      const prefix = messageKeys.queueOfLine(this.#line.lineId);
      const rows = await this.#queue.firstRows(prefix);
      if (behind === null && rows.length === 1) this.#only = rows[0]!.value.messageId;
      this.#isEmpty = rows.length === 0;
      return await this.#queue.firstOf(prefix, behind, rows);
    }
    for (const priority of PRIORITIES) {
      for (const lane of lanes) {
        const row = await this.#queue.firstOf(messageKeys.queueLane(this.#line.lineId, priority, lane), behind);
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
    const oldest = await this.#queue.oldest(lanes, behind);
    if (!oldest) return null;
    const since = waitingSince(positionOf(oldest));
    if (lanes.size === LANES.length) this.#nothingBefore = since;
    return since <= oldestBefore ? oldest : null;
  }

  /** Returns whether the whole queue is in one lane: every chat's messages are then in the order of the queue. */
  async #isInOneLane(): Promise<boolean> {
    const range = { prefix: messageKeys.queueOfLine(this.#line.lineId) };
    const [first, last] = await Promise.all([
      firstRow(this.#kv, range),
      firstRow(this.#kv, range, { reverse: true }),
    ]);
    return first !== null && last !== null && isSameLane(first, last);
  }

  /** Returns the message that departs for this row: the first one of its chat. Null if the row was moved or removed. */
  async #departing(row: Row<QueueRow>, { laneOf, behind }: Choice): Promise<MessageRow | null> {
    const { messageId, chat } = row.value;
    const lane = await laneOf(chat);
    const current = laneAt(row);
    if (lane === "held") {
      await this.#lanes.holdBack(row, laneOf);
      return null;
    }
    // The chat has written, or its last message is no longer recent: the row belongs to the other lane.
    if (lane !== current && (current === "reply" || lane === "reply") && messageId !== this.#only) {
      await this.#lanes.move([row], lane);
      return null;
    }
    const found = await this.#queue.messageAt(row);
    const own = found && { ...found, lane: current };
    if (!own || messageId === this.#only || await this.#isInOneLane()) return own;
    await completeChats(this.#kv, this.#line, positionOf(row));
    for (;;) {
      const first = await this.#queue.firstOf(messageKeys.queueOfChat(this.#line.lineId, chat), behind);
      if (!first || first.value.messageId === messageId) return own;
      const message = await this.#queue.messageAt(first);
      if (message) return message;
    }
  }
}
