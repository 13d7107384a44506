/** Counts per party in fixed windows, in this process only: a restart resets them. */
import type { Clock } from "../runtime.ts";

/** Most parties tracked; beyond that the one with the oldest window is evicted. */
const MOST_PARTIES = 100_000;

interface Window {
  /** Unix ms. */
  endsAt: number;
  count: number;
}

/** A party's window begins with its first count, and the next one with the first count after its end. */
export class Windows {
  readonly #clock: Clock;
  readonly #lengthMs: number;
  /** Ordered by end. */
  readonly #windows = new Map<string, Window>();

  constructor(clock: Clock, lengthMs: number) {
    this.#clock = clock;
    this.#lengthMs = lengthMs;
  }

  /** Counts one more for the party; returns its window. */
  add(party: string): Readonly<Window> {
    const window = this.#open(party) ?? this.#begin(party);
    window.count++;
    return window;
  }

  /** Takes one count of the party's current window back. */
  takeBack(party: string): void {
    const window = this.#open(party);
    if (window && window.count > 0) window.count--;
  }

  /** Returns the party's count in its current window. */
  count(party: string): number {
    return this.#open(party)?.count ?? 0;
  }

  /** Returns the whole seconds, at least one, until the party's window ends. */
  secondsLeft(party: string): number {
    const endsAt = this.#windows.get(party)?.endsAt ?? 0;
    return Math.max(1, Math.ceil((endsAt - this.#clock.now()) / 1000));
  }

  forgive(party: string): void {
    this.#windows.delete(party);
  }

  #open(party: string): Window | null {
    const window = this.#windows.get(party);
    return window && window.endsAt > this.#clock.now() ? window : null;
  }

  #begin(party: string): Window {
    const now = this.#clock.now();
    this.#windows.delete(party);
    for (const [oldest, { endsAt }] of this.#windows) {
      if (endsAt > now && this.#windows.size < MOST_PARTIES) break;
      this.#windows.delete(oldest);
    }
    const window = { endsAt: now + this.#lengthMs, count: 0 };
    this.#windows.set(party, window);
    return window;
  }
}
