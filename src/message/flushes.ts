/**
 * Whose turn it is at the store. The sends of all accounts go in two halves: while one is written, the other is parsed
 * and gathers. If all went at once, everybody would wait for the disk at one time and for the processor at another. The
 * commits of a half begin together, so that the store's group commit writes them in one flush.
 */
import type { Clock } from "../runtime.ts";

/** Sends that are parsed and answered in a millisecond, about: a slower disk gets more at a time. */
const SENDS_A_MS = 12;

/** Whoever has sends to write, one commit at a time. */
interface Party {
  /** How many sends wait for their commit. */
  readonly waiting: number;
}

export class Flushes {
  /** Most sends that a party may take now. */
  share = 1;
  readonly #clock: Clock;
  readonly #waiting: { party: Party; begin: () => void }[] = [];
  /** Those of the present flush; and how each goes on once all others are ready too. */
  readonly #writing = new Map<Party, (() => void) | null>();
  #begunAt = 0;
  #tookMs = 0;
  /** In the last flush. */
  #sends = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the party may take sends; it says with `ready` and `leave` how far it is with them. */
  turn(party: Party): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ party, begin: resolve });
    // What is added in the same turn of the event loop is counted.
    if (this.#writing.size === 0) queueMicrotask(() => this.#next());
    return promise;
  }

  /** Resolves when every party of the flush is ready to write; at once for one that has left. */
  ready(party: Party): Promise<void> {
    if (!this.#writing.has(party)) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#writing.set(party, resolve);
    this.#writeTogether();
    return promise;
  }

  /** Its sends are written, or take longer than others should wait. Idempotent. */
  leave(party: Party): void {
    if (!this.#writing.delete(party)) return;
    if (this.#writing.size > 0) return this.#writeTogether();
    this.#tookMs = this.#clock.now() - this.#begunAt;
    this.#next();
  }

  #writeTogether(): void {
    const all = [...this.#writing.values()];
    if (!all.includes(null)) { for (const write of all) write!(); }
  }

  /** Whole parties begin, in the order in which they came: what a commit costs a party is shared by its sends. */
  #next(): void {
    if (this.#writing.size > 0 || this.#waiting.length === 0) return;
    // Those of the last flush are answered now, and as many will come again.
    const half = this.#waiting.reduce((sum, { party }) => sum + party.waiting, this.#sends) / 2;
    this.share = Math.ceil(Math.max(half, SENDS_A_MS * Math.max(1, this.#tookMs)));
    this.#begunAt = this.#clock.now();
    for (this.#sends = 0; this.#sends < this.share && this.#waiting.length > 0;) {
      const { party, begin } = this.#waiting.shift()!;
      this.#writing.set(party, null);
      this.#sends += Math.min(this.share, party.waiting);
      begin();
    }
  }
}
