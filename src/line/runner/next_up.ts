/** Chooses the next message of a line's queue: replies before others, and no new chats while none may be started. */
import type { Plan } from "../../account/plan.ts";
import { chatOf, hasEnded, type Message } from "../../message/message.ts";
import { QueueHead } from "../../message/queue/head.ts";
import { completeChats, type LineOfAccount } from "../../message/queue/chat_order.ts";
import { Lanes } from "../../message/queue/lanes.ts";
import { positionAt } from "../../message/queue/place.ts";
import { LineQueue } from "../../message/queue/queue.ts";
import { isProved } from "../../message/receipts.ts";
import type { MessageRow } from "../../message/record.ts";
import { type Lane, messageKeys } from "../../message/rows.ts";
import { isRow, type Kv } from "../../store/kv.ts";
import type { Clock } from "../../runtime.ts";
import type { Connection } from "../../whatsapp/connection.ts";
import type { Incoming } from "../../whatsapp/incoming.ts";
import { Chats, chatsOf, newAmong, writtenAt, wroteWithinDays } from "../chats.ts";
import { RESTRICTED } from "./retry_policy.ts";
import { newChatsOf, type Pacing } from "./pacing.ts";

/**
 * Prevents starvation (docs/queue.md): every tenth departure is that of the message that has waited longest, whatever
 * its priority, if it has waited at least this long.
 */
const OLDEST_EVERY = 10;
const OLDEST_AFTER_MS = 10 * 60_000;

/** What decides whose turn it is. */
interface Rules {
  plan: Plan;
  pacing: Pacing | null;
  /** Null if the line is offline. */
  connection: Connection | null;
  now: number;
  /** The id of the message that is on its way now, to choose the one behind it. */
  behind?: string;
}

export class NextUp {
  readonly #kv: Kv;
  readonly #clock: Clock;
  readonly #line: LineOfAccount;
  readonly #head: QueueHead;
  readonly #lanes: Lanes;
  readonly #chats: Chats;
  /** Chats that wrote since the last `sortIn`, with the time, Unix ms. */
  readonly #heard = new Map<string, number>();
  /** The last key of each priority's cold lane at the last `sortIn`; null while no chat has written lately. */
  #ends: Awaited<ReturnType<Lanes["ends"]>> | null = null;
  /** Chats that the network did not let a restricted account answer: not tried again during the restriction. */
  readonly #refused = new Set<string>();
  #isLoaded = false;
  #dueAt = Infinity;

  constructor({ kv, clock }: { kv: Kv; clock: Clock }, line: LineOfAccount) {
    this.#kv = kv;
    this.#clock = clock;
    this.#line = line;
    this.#head = new QueueHead(kv, line);
    this.#lanes = new Lanes(kv, line.lineId);
    this.#chats = new Chats(kv, line.lineId);
  }

  /** When the next scheduled message is due, Unix ms. */
  get dueAt(): number {
    return this.#dueAt;
  }

  /**
   * Notes an incoming message: what waits for its chat is a reply from the next `sortIn` on. Returns whether a message
   * may be waiting, so that a `sortIn` is worthwhile. If none is, messages accepted later are found behind `#ends`.
   */
  heard(message: Pick<Incoming, "chat" | "number" | "participant" | "timestamp">, now: number): boolean {
    const mayWait = this.#ends === null || !this.#head.isEmpty;
    for (const chat of chatsOf(message)) {
      const at = writtenAt(message, now);
      if (mayWait) this.#heard.set(chat, at);
      else this.#chats.heard(chat, { at, now });
    }
    return mayWait;
  }

  /** Updates the rows of the queue: adds scheduled messages that are due, and moves those to chats that wrote. */
  async sortIn(now: number): Promise<void> {
    this.#head.changed();
    const laneOf = (chat: string) => this.#laneOf(chat, now);
    if (!this.#isLoaded) {
      for (const chat of await this.#chats.load(now)) this.#heard.set(chat, this.#heard.get(chat) ?? 0);
      this.#isLoaded = true;
    }
    for (const [chat, at] of this.#heard) this.#chats.heard(chat, { at, now });
    // If no chat has written lately, no message in the cold lanes can be a reply: a chat's
    // messages move when it writes.
    if (!this.#chats.anyWroteLately(now)) this.#ends = null;
    else if (this.#ends === null) this.#ends = await this.#lanes.ends();
    else await this.#lanes.sortIn(this.#ends, { laneOf, clock: this.#clock });
    if (this.#heard.size > 0) await completeChats(this.#kv, this.#line);
    for (const [chat, at] of [...this.#heard]) {
      this.#chats.heard(chat, { at, now });
      await this.#lanes.moveChat(chat, "reply");
      this.#heard.delete(chat);
    }
    await this.#release(now);
  }

  /** Adds scheduled messages that are due to the queue; if they are many, the first of them. */
  async #release(now: number): Promise<void> {
    this.#head.changed();
    this.#dueAt = await this.#lanes.release(now, (chat) => this.#laneOf(chat, now)) ?? Infinity;
  }

  #laneOf(chat: string, now: number): Lane {
    return this.#chats.wroteLately(chat, now) ? "reply" : "cold";
  }

  /** Returns the message that is on its way, or that may have left and has to be sent again before any other. */
  async departing(pacing: Pacing | null): Promise<MessageRow | null> {
    if (!pacing?.departing) return null;
    const slot = await this.#kv.get(messageKeys.message(pacing.departing));
    return isRow(slot) && !hasEnded(slot.value) ? slot : null;
  }

  /**
   * Returns the message whose turn it is; null if none can leave. The end of a restriction wakes the line,
   * and the sweep finds messages that expire until then. While the line may start no new chats, messages
   * to new chats let others pass.
   */
  async message({ plan, pacing, connection, now, behind }: Rules): Promise<MessageRow | null> {
    const isFree = async (chat: string) => await connection?.allows(chat) ?? true;
    const lets = async (chat: string) => {
      if (!await isFree(chat)) {
        return !this.#refused.has(chat) && await wroteWithinDays(this.#kv, this.#line.lineId, { chat, now });
      }
      this.#refused.delete(chat);
      return true;
    };
    const departing = behind === undefined ? await this.departing(pacing) : null;
    if (departing && (isProved(departing.value) || await lets(chatOf(departing.value.to)))) return departing;
    const newChats = newChatsOf(plan, pacing, now);
    const startsNone = newChats !== null && newChats.used >= newChats.limit;
    const allows = async (chat: string) => await lets(chat) && !(startsNone && await this.isNew(chat));
    const turn = (pacing?.departures ?? 0) % OLDEST_EVERY === OLDEST_EVERY - 1;
    const choice = {
      laneOf: async (chat: string) => await allows(chat) ? this.#laneOf(chat, now) : "held",
      oldestBefore: turn ? now - OLDEST_AFTER_MS : null,
      behind: behind ?? null,
    };
    for (;;) {
      const row = await this.#head.next(choice);
      if (row?.value.error?.code === RESTRICTED && !await isFree(chatOf(row.value.to))) {
        // It has been tried.
        this.#refused.add(chatOf(row.value.to));
        this.#head.changed();
        continue;
      }
      if (row === null || this.#dueAt > now || isBefore(this.#dueAt, row.value)) return row;
      // An earlier message to its chat may be due, and not in the queue yet.
      await this.#release(now);
    }
  }

  /** Notes that the first message to a chat has left: the others to it are no longer held back. */
  async started(chat: string): Promise<void> {
    await this.#lanes.moveChat(chat, "cold");
  }

  /** Returns the ids of the first messages of the queue, scheduled ones included. */
  async first(limit: number): Promise<string[]> {
    return await Array.fromAsync(new LineQueue(this.#kv, this.#line.lineId).each(limit), ({ id }) => id);
  }

  /** Returns whether the chat is new: neither side has written in it. */
  async isNew(chat: string): Promise<boolean> {
    return (await newAmong(this.#kv, this.#line.lineId, [chat])).size > 0;
  }
}

/** Returns whether the message comes before those that are still scheduled, none of them for before this time. */
function isBefore(dueAt: number, { sendAt, position }: Message): boolean {
  return sendAt === null ? position <= positionAt(dueAt) : sendAt <= dueAt;
}
