/** Moves a line's waiting messages: into the queue when they are due, and to the current lane of their chat. */
import { inBatches, yielding } from "../../base/batches.ts";
import type { Clock } from "../../runtime.ts";
import { Change, firstRow, type Key, type Kv, prefix, retryOnConflict, type Row } from "../../store/kv.ts";
import { type Message, PRIORITIES, type Priority } from "../message.ts";
import { type Lane, LANES, messageKeys, type QueueRow } from "../rows.ts";
import { addTurn, changeRows, chatKeyOf, isPlaceOf, keyAfter, rowOf } from "./place.ts";

/** Returns the current lane of messages to the chat. `held` messages may not leave. */
export type LaneOf = (chat: string) => Lane | Promise<Lane>;

/** Rows moved per commit. */
const MOVED_AT_ONCE = 100;

/** The lanes of one line. */
export class Lanes {
  readonly #kv: Kv;
  readonly #lineId: string;

  constructor(kv: Kv, lineId: string) {
    this.#kv = kv;
    this.#lineId = lineId;
  }

  /**
   * Moves scheduled messages that are due into the queue, up to `MOVED_AT_ONCE` per call. Resolves to a time, Unix ms,
   * before which none is due any more; it may be in the past, also after a conflict with a change of a message. Null if
   * none is scheduled.
   */
  async release(now: number, laneOf: LaneOf): Promise<number | null> {
    const prefix = messageKeys.scheduleOfLine(this.#lineId);
    const first = await firstRow(this.#kv, { prefix });
    if (first === null || dueAt(first) > now) return first && dueAt(first);
    const rows = await Array.fromAsync(this.#kv.list({ prefix }, { limit: MOVED_AT_ONCE }));
    const due = rows.filter((row) => dueAt(row) <= now);
    for (const some of inBatches(due, this.#kv.mostChecks)) {
      const slots = await this.#kv.getMany(some.map((row) => messageKeys.message(row.value.messageId)));
      const change = new Change();
      for (const [i, { key, value: { chat } }] of some.entries()) {
        const message = slots[i]!.value;
        // Checked: a message rescheduled meanwhile may have this row as its new place.
        change.check(slots[i]!).delete(key);
        if (message && isPlaceOf(key, message)) addTurn(change, message, await laneOf(chat));
      }
      if (await this.#kv.commit(change) === null) return dueAt(some[0]!);
    }
    const next = rows[due.length];
    if (next) return dueAt(next);
    return rows.length < MOVED_AT_ONCE ? null : dueAt(rows.at(-1)!);
  }

  /**
   * Moves the chat's waiting messages to a lane: to `reply` when the chat wrote, out of `held` when it is no longer new.
   * Those that have no row by chat yet stay in the cold lane (`completeChats`).
   */
  async moveChat(chat: string, lane: Lane): Promise<void> {
    const rows = await Array.fromAsync(this.#kv.list({ prefix: messageKeys.queueOfChat(this.#lineId, chat) }));
    for (const some of inBatches(rows, this.#kv.mostChecks)) {
      await retryOnConflict(this.#kv, async () => {
        const slots = await this.#kv.getMany(some.map((row) => messageKeys.message(row.value.messageId)));
        const change = new Change();
        for (const [i, slot] of slots.entries()) {
          if (slot.value && isPlaceOf(some[i]!.key, slot.value)) toLane(change.check(slot), slot.value, lane);
        }
        return { change, result: null };
      });
    }
  }

  /** Returns the last key of each priority's cold lane, for `sortIn`. */
  async ends(): Promise<Map<Priority, Key | null>> {
    const last = async (priority: Priority) => {
      const prefix = messageKeys.queueLane(this.#lineId, priority, "cold");
      return [priority, (await firstRow(this.#kv, { prefix }, { reverse: true }))?.key ?? null] as const;
    };
    return new Map(await Promise.all(PRIORITIES.map(last)));
  }

  /**
   * Moves messages that were accepted after `ends`, for chats that wrote lately, to the reply lane, and advances
   * `ends`. A message that waits alone has none to pass: it stays, and is checked again once others wait.
   */
  async sortIn(ends: Map<Priority, Key | null>, { laneOf, clock }: { laneOf: LaneOf; clock: Clock }): Promise<void> {
    const firstTwo = this.#kv.list({ prefix: messageKeys.queueOfLine(this.#lineId) }, { limit: 2 });
    if ((await Array.fromAsync(firstTwo)).length < 2) return;
    for (const [priority, end] of ends) {
      const prefix = messageKeys.queueLane(this.#lineId, priority, "cold");
      const range = { prefix, ...(end === null ? {} : { start: keyAfter(end) }) };
      const replies: Row<QueueRow>[] = [];
      // Yields, because a bulk adds thousands of rows.
      for await (const row of yielding(this.#kv.list(range), clock)) {
        ends.set(priority, row.key);
        if (await laneOf(row.value.chat) === "reply") replies.push(row);
      }
      await this.move(replies, "reply");
    }
  }

  /** Moves messages to new chats, from this row on, to the held lane, out of the way of messages that may leave. */
  async holdBack(row: Row<QueueRow>, laneOf: LaneOf): Promise<void> {
    const lane = prefix<QueueRow>(...row.key.slice(0, 4));
    const held: Row<QueueRow>[] = [];
    for await (const next of this.#kv.list({ prefix: lane, start: row.key }, { limit: MOVED_AT_ONCE })) {
      if (await laneOf(next.value.chat) === "held") held.push(next);
    }
    await this.move(held, "held");
  }

  /** Moves rows of the queue to the same place in another lane. */
  async move(rows: readonly Row<QueueRow>[], lane: Lane): Promise<void> {
    for (const some of inBatches(rows, this.#kv.mostChecks)) {
      await changeRows(this.#kv, some, (left) => {
        const change = new Change();
        for (const row of left) {
          const { key, value } = row;
          const [family, lineId, priority, , ...place] = key;
          change.delete(key).set([family!, lineId!, priority!, LANES.indexOf(lane), ...place], value);
          // Outside the cold lane, `completeChats` would not find it.
          change.set(chatKeyOf(row), value);
        }
        return change;
      });
    }
  }
}

function toLane(change: Change, message: Message, lane: Lane): void {
  const { sessionId, priority } = message;
  for (const other of LANES) {
    if (other !== lane) change.delete(messageKeys.queue(sessionId, priority, other, message));
  }
  change.set(messageKeys.queue(sessionId, priority, lane, message), rowOf(message));
}

/** Returns when a row of the schedule is due, Unix ms. */
function dueAt({ key }: Row<QueueRow>): number {
  return Number(key[2]);
}
