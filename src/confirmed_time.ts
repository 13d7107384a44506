/**
 * The time up to which things expire and are deleted for good. It follows the system's clock only as far as that can be
 * believed: a clock that jumps ahead by hours, by mistake or in a failed synchronization, must not fail what waits or
 * remove what is kept.
 */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** How far the system's clock may run ahead without a confirmation: longer than what a killed run has not kept. */
const BELIEVED_MS = 30 * MINUTE_MS;
/** How long a time ahead has to stand until it is believed, if nobody says otherwise. */
const STANDS_MS = 6 * HOUR_MS;
/** How far a clock may be from the network's and still be called right. */
const AGREES_MS = 10 * MINUTE_MS;

/** A time, and the moment at which it was true, by a clock that nobody sets. */
interface Moment {
  time: number;
  at: number;
}

export class ConfirmedTime {
  readonly #wall: () => number;
  readonly #elapsed: () => number;
  #confirmed: Moment;
  /** Since when the system's clock is ahead, and by how much; null while it is believed. */
  #jump: { at: number; aheadMs: number } | null = null;
  /** The network's time, as told last. */
  #told: Moment | null = null;
  /** Whether that contradicted the system's. */
  #isDenied = false;

  /** Believes the system's clock as it is now. `wall` is Unix ms, `elapsed` is ms since any fixed moment. */
  constructor(wall: () => number, elapsed: () => number) {
    this.#wall = wall;
    this.#elapsed = elapsed;
    this.#confirmed = { time: wall(), at: elapsed() };
  }

  /** Unix ms; never ahead of the system's clock. */
  now(): number {
    const [time, at] = [this.#wall(), this.#elapsed()];
    const known = this.#confirmed.time + at - this.#confirmed.at;
    const aheadMs = time - known;
    // A clock that was wrong when the network told its time is right once it says the same.
    if (this.#isDenied && this.#isAsTold(time, at)) this.#isDenied = false;
    else if (aheadMs > BELIEVED_MS) {
      if (this.#jump === null || Math.abs(aheadMs - this.#jump.aheadMs) > BELIEVED_MS) this.#jump = { at, aheadMs };
      if (this.#isDenied || at - this.#jump.at < STANDS_MS) return Math.floor(known);
    }
    this.#jump = null;
    this.#confirmed = { time, at };
    return time;
  }

  /** Returns by how much the system's clock is ahead of what is confirmed, ms; 0 while it is believed. */
  aheadMs(): number {
    const confirmed = this.now();
    return this.#jump === null ? 0 : this.#wall() - confirmed;
  }

  /** Tells the network's time, Unix ms. */
  confirm(time: number): void {
    const at = this.#elapsed();
    this.#told = { time, at };
    this.#isDenied = !this.#isAsTold(this.#wall(), at);
    this.#confirmed = { time: this.#isDenied ? time : this.#wall(), at };
  }

  #isAsTold(time: number, at: number): boolean {
    return this.#told !== null && Math.abs(time - (this.#told.time + at - this.#told.at)) <= AGREES_MS;
  }

  /** Continues from the time that an earlier run confirmed last, Unix ms. */
  resume(time: number): void {
    this.#confirmed = { time: Math.min(time, this.#wall()), at: this.#elapsed() };
  }
}
