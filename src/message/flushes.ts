/**
 * Schedules the commits of all accounts' sends. The sends are written in two alternating halves: while one half is
 * written, the other is parsed and gathers. If all were written at once, all would wait for the disk first and then all
 * for the processor. The commits of a half begin together, so that the store's group commit writes them in one flush.
 */
import type { Clock } from "../runtime.ts";

/** About how many sends are parsed and answered per millisecond; with a slower disk, more are written per flush. */
const SENDS_A_MS = 12;

/** The sends of one account, which are written one commit at a time. */
interface Party {
  /** Number of sends that wait for their commit. */
  readonly waiting: number;
}

export class Flushes {
  /** The maximum number of sends that a party may take now. */
  share = 1;
  readonly #clock: Clock;
  readonly #waiting: { party: Party; begin: () => void }[] = [];
  /** The parties of the current flush; the value lets a party that is ready write, and is null until it is ready. */
  readonly #writing = new Map<Party, (() => void) | null>();
  #begunAt = 0;
  #tookMs = 0;
  /** Number of sends in the last flush. */
  #sends = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves when the party may take sends. The party then calls `ready` before it writes them, and `leave` afterwards.
   */
  turn(party: Party): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ party, begin: resolve });
    // Deferred, so that sends added in the same turn of the event loop are counted.
    if (this.#writing.size === 0) queueMicrotask(() => this.#next());
    return promise;
  }

  /** Resolves when every party of the flush is ready to write; at once for a party that has left. */
  ready(party: Party): Promise<void> {
    if (!this.#writing.has(party)) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#writing.set(party, resolve);
    this.#writeTogether();
    return promise;
  }

  /** Ends the party's part in the flush: its sends are written, or take longer than others should wait. Idempotent. */
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

  /**
   * Begins the next flush with whole parties, in order of arrival, so that all sends of a party
   * share the cost of its commit.
   */
  #next(): void {
    if (this.#writing.size > 0 || this.#waiting.length === 0) return;
    // The sends of the last flush are answered now, and about as many new ones will follow.
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
