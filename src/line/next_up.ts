/** Whose turn it is in the queue of one line: replies before others, and no new chats while none may be started. */
import type { Plan } from "../account/plan.ts";
import { hasEnded } from "../message/message.ts";
import { QueueHead } from "../message/queue/head.ts";
import { Lanes } from "../message/queue/lanes.ts";
import { LineQueue } from "../message/queue/queue.ts";
import { isProved } from "../message/receipts.ts";
import type { MessageRow } from "../message/record.ts";
import { messageKeys } from "../message/rows.ts";
import { isRow, type Kv } from "../store/kv.ts";
import type { Clock } from "../runtime.ts";
import type { Connection } from "../whatsapp/connection.ts";
import type { Incoming } from "../whatsapp/incoming.ts";
import { Chats, chatsOf, newAmong, writtenAt } from "./chats.ts";
import { newChatsOf } from "./new_chats.ts";
import type { Pacing } from "./pacing.ts";

/**
 * Nothing waits for ever (docs/queue.md): one departure in so many is of the message that has waited longest, whatever
 * its priority, once that is so long.
 */
const OLDEST_EVERY = 10;
const OLDEST_AFTER_MS = 10 * 60_000;

/** What decides about turns. */
interface Rules {
  plan: Plan;
  pacing: Pacing | null;
  /** Null: the line is offline. */
  connection: Connection | null;
  now: number;
  /** The message that is on its way now: the turn is of the one behind it. */
  behind?: string;
}

export class NextUp {
  readonly #kv: Kv;
  readonly #clock: Clock;
  readonly #lineId: string;
  readonly #head: QueueHead;
  readonly #lanes: Lanes;
  readonly #chats: Chats;
  /** Chats that wrote since the last look. */
  readonly #heard = new Map<string, number>();
  /** Where the queue of each priority ended at the last look; null while no chat has written lately. */
  #ends: Awaited<ReturnType<Lanes["ends"]>> | null = null;
  #isLoaded = false;
  #dueAt = Infinity;

  constructor({ kv, clock }: { kv: Kv; clock: Clock }, lineId: string) {
    this.#kv = kv;
    this.#clock = clock;
    this.#lineId = lineId;
    this.#head = new QueueHead(kv, lineId);
    this.#lanes = new Lanes(kv, lineId);
    this.#chats = new Chats(kv, lineId);
  }

  /** When the next scheduled message is due, Unix ms. */
  get dueAt(): number {
    return this.#dueAt;
  }

  /**
   * A message came in: what waits for its chat is a reply from the next look on. Answers whether there is anything to look
   * at: where nothing waits, what is accepted later is found behind the ends.
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

  /** Brings the rows of the queue up to date: messages that are due, and those to chats that wrote. */
  async sortIn(now: number): Promise<void> {
    this.#head.changed();
    const laneOf = (chat: string) => this.#chats.wroteLately(chat, now) ? "reply" : "cold";
    if (!this.#isLoaded) {
      for (const chat of await this.#chats.load(now)) this.#heard.set(chat, this.#heard.get(chat) ?? 0);
      this.#isLoaded = true;
    }
    for (const [chat, at] of this.#heard) this.#chats.heard(chat, { at, now });
    // Otherwise nothing that waits is a reply: whatever there is of a chat is moved when it writes.
    if (!this.#chats.anyWroteLately(now)) this.#ends = null;
    else if (this.#ends === null) this.#ends = await this.#lanes.ends();
    else await this.#lanes.sortIn(this.#ends, { laneOf, clock: this.#clock });
    for (const [chat, at] of [...this.#heard]) {
      this.#chats.heard(chat, { at, now });
      await this.#lanes.moveChat(chat, "reply");
      this.#heard.delete(chat);
    }
    this.#dueAt = await this.#lanes.release(now, laneOf) ?? Infinity;
  }

  /** The message that is on its way, or may have left and has to go again before any other. */
  async departing(pacing: Pacing | null): Promise<MessageRow | null> {
    if (!pacing?.departing) return null;
    const slot = await this.#kv.get(messageKeys.message(pacing.departing));
    return isRow(slot) && !hasEnded(slot.value) ? slot : null;
  }

  /**
   * The message whose turn it is; null when nothing can leave: what ends a restriction wakes the line, and what expires
   * meanwhile is found by the sweep. While the line may start no new chats, those to new ones let others pass.
   */
  async message({ plan, pacing, connection, now, behind }: Rules): Promise<MessageRow | null> {
    const lets = async (to: string) => await connection?.allows(to) ?? true;
    const departing = behind === undefined ? await this.departing(pacing) : null;
    if (departing && (isProved(departing.value) || await lets(departing.value.to))) return departing;
    const newChats = newChatsOf(plan, pacing, now);
    const startsNone = newChats !== null && newChats.used >= newChats.limit;
    const allows = async (chat: string) => await lets(chat) && !(startsNone && await this.isNew(chat));
    const turn = (pacing?.departures ?? 0) % OLDEST_EVERY === OLDEST_EVERY - 1;
    return await this.#head.next({
      laneOf: async (chat) => !await allows(chat) ? "held" : this.#chats.wroteLately(chat, now) ? "reply" : "cold",
      oldestBefore: turn ? now - OLDEST_AFTER_MS : null,
      behind: behind ?? null,
    });
  }

  /** The first message to a chat has left: the others to it are to a new chat no longer. */
  async started(chat: string): Promise<void> {
    await this.#lanes.moveChat(chat, "cold");
  }

  /** The first messages of the queue, for whoever fails them. */
  async first(limit: number): Promise<string[]> {
    return await Array.fromAsync(new LineQueue(this.#kv, this.#lineId).each(limit), ({ id }) => id);
  }

  /** Whether neither side has written in the chat. */
  async isNew(chat: string): Promise<boolean> {
    return (await newAmong(this.#kv, this.#lineId, [chat])).size > 0;
  }
}
