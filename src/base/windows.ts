/** Counting by party within a time, in this process alone: a restart forgives. */
import type { Clock } from "../runtime.ts";

/** Parties that are remembered; past them the one whose window began first is forgiven. */
const MOST_PARTIES = 100_000;

interface Window {
  /** Unix ms. */
  endsAt: number;
  count: number;
}

/** A party's window begins with the first that is counted of it, and the next with the first after its end. */
export class Windows {
  readonly #clock: Clock;
  readonly #lengthMs: number;
  /** In the order of their ends. */
  readonly #windows = new Map<string, Window>();

  constructor(clock: Clock, lengthMs: number) {
    this.#clock = clock;
    this.#lengthMs = lengthMs;
  }

  /** Counts one more of the party; its window as it is then. */
  add(party: string): Readonly<Window> {
    const window = this.#open(party) ?? this.#begin(party);
    window.count++;
    return window;
  }

  /** How much was counted of the party in its window. */
  count(party: string): number {
    return this.#open(party)?.count ?? 0;
  }

  /** Whole seconds, at least one, until the party's window ends. */
  secondsLeft(party: string): number {
    const endsAt = this.#windows.get(party)?.endsAt ?? 0;
    return Math.max(1, Math.ceil((endsAt - this.#clock.now()) / 1000));
  }

  forgive(party: string): void {
    this.#windows.delete(party);
  }

  #open(party: string): Window | null {
    const window = this.#windows.get(party);
    const leftMs = window ? window.endsAt - this.#clock.now() : 0;
    // One that ends too late began before the clock was set back.
    return window && leftMs > 0 && leftMs <= this.#lengthMs ? window : null;
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
