/**
 * A plain model of waiting messages, kept from what is committed. It holds every departure against the rules of the
 * queue (docs/queue.md), written anew here.
 */
import assert from "node:assert/strict";
import { chatOf, hasEnded, isProposed, type Message, PRIORITIES } from "../../src/message/message.ts";
import { lineKeys } from "../../src/line/rows.ts";
import { waitingSince } from "../../src/message/queue/place.ts";
import { messageKeys } from "../../src/message/rows.ts";
import { type Change, type Key, nameOfKey } from "../../src/store/kv.ts";

const OLDEST_AFTER_MS = 10 * 60_000;

/** A message as last committed, and since when, Unix ms, it has been so, and at its place. */
interface Known {
  message: Message;
  changedAt: number;
  placedAt: number;
}

interface QueueModelOptions {
  /** By how much the clocks of processes are ahead of the true time, at most. */
  mostAheadMs: number;
  /** Whether the line may start few new chats: then urgent messages may have to wait. */
  holdsBack(lineId: string): boolean;
}

export class QueueModel {
  readonly #now: () => number;
  readonly #options: QueueModelOptions;
  readonly #known = new Map<string, Known>();
  /** When each bulk was published, and each line paused. */
  readonly #published = new Map<string, number>();
  readonly #paused = new Map<string, number>();
  /** The text of each message as of its last departure, by network id. */
  readonly #texts = new Map<string, string>();
  /** Departures while others could have left. */
  checked = 0;

  /** `now` is the true time. */
  constructor(now: () => number, options: QueueModelOptions) {
    this.#now = now;
    this.#options = options;
  }

  /** The messages that count: those of a bulk only once it is published. */
  get accepted(): Message[] {
    return this.#counting.map(({ message }) => message);
  }

  get #counting(): Known[] {
    return [...this.#known.values()].filter(({ message: { bulkId } }) =>
      bulkId === null || this.#published.has(bulkId)
    );
  }

  /** Returns the text that the message had when it departed. */
  textOf(networkId: string): string | undefined {
    return this.#texts.get(networkId);
  }

  /** Notes a commit that was written by a process whose clock is ahead of the true time by this. */
  committed({ mutations }: Pick<Change, "mutations">, aheadMs: number): void {
    for (const mutation of mutations) {
      const { key } = mutation;
      const value = mutation.kind === "set" ? mutation.value : null;
      const [name, id] = [String(key[0]), String(key[1])];
      if (isKey(key, messageKeys.bulk(id))) this.#published.set(id, this.#now());
      else if (isKey(key, lineKeys.queuePaused(id))) {
        if (value === null) this.#paused.delete(id);
        else if (!this.#paused.has(id)) this.#paused.set(id, this.#now());
      } else if (name === "message") {
        if (value === null) this.#known.delete(id);
        else this.#changed(value as Message, aheadMs);
      }
    }
  }

  #changed(message: Message, aheadMs: number): void {
    const before = this.#known.get(message.id);
    const now = this.#now();
    if (before) {
      assert(!hasEnded(before.message) || before.message.status === message.status, `${message.id} ended twice`);
      assert(message.status !== "processing" || !isProposed(before.message), `${message.id} left unapproved`);
      if (message.status === "processing" && before.message.status === "queued") this.#departs(message, aheadMs);
    } else assert.equal(message.status, "queued");
    this.#known.set(message.id, {
      message,
      changedAt: now,
      placedAt: before?.message.position === message.position && isProposed(before.message) === isProposed(message)
        ? before.placedAt
        : now,
    });
  }

  /** A line may know of what changes in the very moment of a departure, or not. */
  #departs(message: Message, aheadMs: number): void {
    const { id, sessionId, bulkId, sendAt, networkId, content } = message;
    if (content.kind === "text") this.#texts.set(networkId, content.text);
    const now = this.#now();
    assert(sendAt === null || sendAt <= now + this.#options.mostAheadMs, `${id} left ${sendAt! - now} ms early`);
    assert(bulkId === null || this.#published.has(bulkId), `${id} left before its bulk was accepted`);
    assert((this.#paused.get(sessionId) ?? now) === now, `${id} left while the queue was paused`);
    // One that may have left goes again before all others.
    if (message.attempts > 1) return;
    const counting = this.#counting.filter((known) => known.message.sessionId === sessionId);
    const waiting = counting.filter(({ message }) => message.status === "queued" && !isProposed(message));
    const ofChat = ({ message: { to } }: Known) => chatOf(to) === chatOf(message.to);
    const isReady = ({ message: { sendAt, bulkId }, placedAt }: Known) =>
      Math.max(placedAt, (sendAt ?? 0) - aheadMs, this.#published.get(bulkId ?? "") ?? 0) < now;
    const ready = waiting.filter(isReady);
    for (const known of ready.filter(ofChat)) {
      assert(!isBefore(known.message, message), `${id} overtook ${known.message.id} in its chat`);
    }
    if (ready.length > 1) this.checked++;
    if (this.#options.holdsBack(sessionId)) return;
    // What has waited for so long may pass.
    if (waitingSince(message.position) <= now + aheadMs - OLDEST_AFTER_MS) return;
    // What stands in the way of an urgent message to its chat is as urgent, until that ends or changes.
    if (counting.some((known) => ofChat(known) && known.message.status !== "sent" && known.changedAt === now)) return;
    const behind = waiting.filter((known) => ofChat(known) && isBefore(message, known.message));
    const most = Math.min(rank(message), ...behind.map((known) => rank(known.message)));
    for (const known of ready.filter((known) => known.changedAt < now)) {
      assert(rank(known.message) >= most, `${id} left before ${known.message.id}, which is more urgent`);
    }
  }
}

function isKey(key: Key, other: Key): boolean {
  return nameOfKey(key) === nameOfKey(other);
}

function rank({ priority }: Message): number {
  return PRIORITIES.indexOf(priority);
}

function isBefore(one: Message, other: Message): boolean {
  return (one.position - other.position || orderOf(one) - orderOf(other)) < 0;
}

function orderOf({ historyNumber, order = historyNumber }: Message): number {
  return order;
}
