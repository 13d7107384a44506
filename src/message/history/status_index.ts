/**
 * Index of an account's messages by status: tells which history numbers have a status, without reading the messages.
 *
 * A status fits in 2 bits, so one 64-bit counter (a word) holds those of 30 messages. Above the words are two levels of
 * nodes, each covering 64 counters of the level below (1,920 and 122,880 messages). A node packs three counts of 21
 * bits, one for each status except `queued`, which is the remainder. A status change adds a difference to three
 * counters. `add` never conflicts, and group commit sums it. The sums are exact, because each change of a message is
 * committed exactly once. `queued` is 0 everywhere, so a new message costs nothing here.
 */
import { LRUCache } from "lru-cache";
import { atMost } from "../../base/at_most.ts";
import { messageKeys } from "../rows.ts";
import type { Change, Kv } from "../../store/kv.ts";
import { BLOCK_SIZE } from "./ledger.ts";
import type { MessageStatus } from "../message.ts";
import { CONTAINER_SIZE, intersect, type NumberSet } from "./number_set.ts";

const CODES: Readonly<Record<MessageStatus, number>> = { queued: 0, processing: 1, sent: 2, failed: 3 };
const STATUS_BITS = 2;
const COUNT_BITS = 21;
const FANOUT = 64;
/** Messages covered by one counter of each level; level 0 has the words. */
const SPAN = [BLOCK_SIZE, BLOCK_SIZE * FANOUT, BLOCK_SIZE * FANOUT ** 2] as const;
const TOP = SPAN.length - 1;

/** Adds a message's change of status to the index. */
export function moveStatus(
  change: Change,
  message: { accountId: string; historyNumber: number },
  move: { from: MessageStatus; to: MessageStatus },
): void {
  const [from, to] = [CODES[move.from], CODES[move.to]];
  const offset = message.historyNumber - 1;
  SPAN.forEach((span, level) => {
    const amount = level === 0
      ? BigInt(to - from) << BigInt((offset % BLOCK_SIZE) * STATUS_BITS)
      : countOfOne(to) - countOfOne(from);
    change.add(messageKeys.statusCounts(message.accountId, level, Math.floor(offset / span)), amount);
  });
}

/** Returns a node's packed counts for a single message with this status code. */
function countOfOne(code: number): bigint {
  return code === 0 ? 0n : 1n << BigInt((code - 1) * COUNT_BITS);
}

/**
 * Cache of stretches of counters whose messages have all ended (`sent`, `failed`). Those statuses are final, so such a
 * stretch never changes again. With the cache, deep pages of a long history need no read of the index.
 */
export class EndedStretches {
  readonly #stretches = new LRUCache<string, BigUint64Array>(atMost(REMEMBERED_STRETCHES));

  get(name: string): BigUint64Array | undefined {
    return this.#stretches.get(name);
  }

  /** Caches the stretch if all messages that it covers have ended. */
  offer(name: string, level: number, counters: BigUint64Array): void {
    if (level === TOP || counters.length < FANOUT || !counters.every((counter) => hasEnded(level, counter))) return;
    this.#stretches.set(name, counters);
  }
}

/** Stretches in the cache, of 512 bytes each; enough for the words of 7 million messages. */
const REMEMBERED_STRETCHES = 4096;

/** The upper bit of each status in a word, which is set only in the codes of `sent` and `failed`. */
const ENDED_BITS = BigInt("0b" + "10".repeat(BLOCK_SIZE));

function hasEnded(level: number, counter: bigint): boolean {
  if (level === 0) return (counter & ENDED_BITS) === ENDED_BITS;
  return countIn(counter, CODES.sent) + countIn(counter, CODES.failed) === SPAN[level];
}

/** What a query asks of the index. */
interface StatusQuery {
  accountId: string;
  status: MessageStatus;
  /** The account's last history number. */
  messages: number;
}

/** Reads one account's index for one status, for the duration of one query. */
export class StatusReader {
  readonly #kv: Kv;
  readonly #ended: EndedStretches;
  readonly #accountId: string;
  readonly #code: number;
  readonly #messages: number;
  /** Each stretch of counters is read once per query, so that all parts of the answer agree. */
  readonly #stretches = new Map<string, Promise<BigUint64Array>>();

  constructor(source: { kv: Kv; ended: EndedStretches }, query: StatusQuery) {
    this.#kv = source.kv;
    this.#ended = source.ended;
    this.#accountId = query.accountId;
    this.#code = CODES[query.status];
    this.#messages = query.messages;
  }

  /** Returns how many of the first `number` messages have the status. */
  async rank(number: number): Promise<number> {
    if (number === 0) return 0;
    if (number === this.#messages) return sum(await this.#counts(TOP, 0));
    const before = await Promise.all(SPAN.map(async (span, level) => {
      const index = Math.floor(number / span);
      const start = startOfStretch(level, index);
      return sum((await this.#counts(level, start)).slice(0, index - start));
    }));
    const inLastWord = await this.#numbersInWord(Math.floor(number / BLOCK_SIZE));
    return sum(before) + inLastWord.filter((found) => found <= number).length;
  }

  /** Returns the history numbers of the messages ranked `first` to `last` among those with the status, oldest first. */
  async select(first: number, last: number): Promise<number[]> {
    if (last < first) return [];
    /** Stretches to search at the next level, each with the number of matching messages before it. */
    let open = [{ start: 0, rank: 0 }];
    for (let level = TOP; level >= 0; level--) {
      const stretches = await Promise.all(open.map(({ start }) => this.#counts(level, start)));
      open = stretches.flatMap((counts, i) => {
        let { start, rank } = open[i]!;
        const hits: typeof open = [];
        for (const count of counts) {
          if (rank < last && rank + count >= first) hits.push({ start: level === 0 ? start : start * FANOUT, rank });
          start++;
          rank += count;
        }
        return hits;
      });
    }
    const words = await Promise.all(open.map(({ start }) => this.#numbersInWord(start)));
    return words.flatMap((numbers, i) => {
      const { rank } = open[i]!;
      return numbers.slice(Math.max(0, first - rank - 1), Math.max(0, last - rank));
    });
  }

  /** Clears the bits of messages that do not have the status. */
  async keep({ container, bits }: NumberSet): Promise<void> {
    const stretches = CONTAINER_SIZE / (BLOCK_SIZE * FANOUT);
    const words = bits.length / stretches;
    await Promise.all(Array.from({ length: stretches }, async (_, i) => {
      const own = bits.subarray(i * words, (i + 1) * words);
      if (own.every((word) => word === 0)) return;
      const counters = await this.#counters(0, (container * stretches + i) * FANOUT);
      intersect(own, numbersWith(this.#code, counters));
    }));
  }

  /** Returns how many messages have the status under each counter of a stretch. */
  async #counts(level: number, start: number): Promise<number[]> {
    const counters = await this.#counters(level, start);
    return Array.from(counters, (counter, i) => {
      const index = start + i;
      if (level === 0) return this.#slotsWithStatus(counter, index).length;
      if (this.#code !== CODES.queued) return countIn(counter, this.#code);
      const size = Math.min(SPAN[level]!, this.#messages - index * SPAN[level]!);
      return size - sum([1, 2, 3].map((code) => countIn(counter, code)));
    });
  }

  async #numbersInWord(index: number): Promise<number[]> {
    const start = startOfStretch(0, index);
    const word = (await this.#counters(0, start))[index - start];
    return word === undefined ? [] : this.#slotsWithStatus(word, index).map((slot) => index * BLOCK_SIZE + slot + 1);
  }

  #slotsWithStatus(word: bigint, index: number): number[] {
    const halves = [Number(word & 0xffffffffn), Number(word >> 32n)];
    const slots: number[] = [];
    const used = Math.min(BLOCK_SIZE, this.#messages - index * BLOCK_SIZE);
    for (let slot = 0; slot < used; slot++) {
      const code = (halves[slot >> 4]! >>> ((slot & 15) * STATUS_BITS)) & 3;
      if (code === this.#code) slots.push(slot);
    }
    return slots;
  }

  #counters(level: number, start: number): Promise<BigUint64Array> {
    const name = `${this.#accountId}/${level}/${start}`;
    const known = this.#stretches.get(name) ?? this.#readCounters(name, level, start);
    this.#stretches.set(name, known);
    return known;
  }

  /** Reads the counters of a stretch that are in use; a counter without a row is 0. */
  async #readCounters(name: string, level: number, start: number): Promise<BigUint64Array> {
    const ended = this.#ended.get(name);
    if (ended) return ended;
    const inUse = Math.max(0, Math.ceil(this.#messages / SPAN[level]!) - start);
    const counters = new BigUint64Array(level === TOP ? inUse : Math.min(FANOUT, inUse));
    const at = (index: number) => messageKeys.statusCounts(this.#accountId, level, index);
    const range = {
      prefix: messageKeys.statusCountsOf(this.#accountId, level),
      start: at(start),
      end: at(start + counters.length),
    };
    for await (const row of this.#kv.list(range, { limit: counters.length })) {
      counters[Number(row.key.at(-1)) - start] = row.value;
    }
    this.#ended.offer(name, level, counters);
    return counters;
  }
}

/** Returns, for each level below the top, the counter below which none is read once all queries are above the floor. */
export function forgettable(floor: number): { level: number; end: number }[] {
  return SPAN.slice(0, TOP).map((span, level) => ({ level, end: startOfStretch(level, Math.floor(floor / span)) }));
}

/** Returns the first counter of the stretch that this counter belongs to. */
function startOfStretch(level: number, index: number): number {
  return level === TOP ? 0 : Math.floor(index / FANOUT) * FANOUT;
}

/** Returns a bitmap of the messages in a stretch of words that have the status. */
function numbersWith(code: number, words: BigUint64Array): Uint32Array {
  const found = new Uint32Array(BLOCK_SIZE * FANOUT / 32);
  const halves = new Uint32Array(words.buffer, words.byteOffset, words.length * 2);
  for (let i = 0; i < words.length; i++) {
    const block = (matches(halves[2 * i]!, code) | matches(halves[2 * i + 1]!, code) << 16) & (2 ** BLOCK_SIZE - 1);
    const at = i * BLOCK_SIZE;
    found[at >>> 5]! |= block << (at & 31);
    // The part of the block that reaches into the next word.
    if ((at & 31) > 32 - BLOCK_SIZE) found[(at >>> 5) + 1]! |= block >>> (32 - (at & 31));
  }
  return found;
}

/** Returns 16 bits that tell which of the 16 statuses in half a word equal the code. */
function matches(half: number, code: number): number {
  const differs = half ^ (code * 0x55555555);
  let same = ~(differs | differs >>> 1) & 0x55555555;
  same = (same | same >>> 1) & 0x33333333;
  same = (same | same >>> 2) & 0x0f0f0f0f;
  same = (same | same >>> 4) & 0x00ff00ff;
  return (same | same >>> 8) & 0xffff;
}

/** Returns the count of one code in a node. */
function countIn(node: bigint, code: number): number {
  return Number((node >> BigInt((code - 1) * COUNT_BITS)) & ((1n << BigInt(COUNT_BITS)) - 1n));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
