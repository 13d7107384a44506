/** Counts per tenant in fixed windows, in this process only: a restart resets them. */
import type { Clock } from "../runtime.ts";

/** Most tenants tracked; beyond that the one with the oldest window is evicted. */
const MOST_PARTIES = 100_000;

interface Window {
  /** Unix ms. */
  endsAt: number;
  count: number;
}

/** A tenant's window begins with its first count, and the next one with the first count after its end. */
export class Windows {
  readonly #clock: Clock;
  readonly #lengthMs: number;
  /** Ordered by end. */
  readonly #windows = new Map<string, Window>();

  constructor(clock: Clock, lengthMs: number) {
    this.#clock = clock;
    this.#lengthMs = lengthMs;
  }

  /** Counts one more for the tenant; returns its window. */
  add(tenant: string): Readonly<Window> {
    const window = this.#open(tenant) ?? this.#begin(tenant);
    window.count++;
    return window;
  }

  /** Takes one count of the tenant's current window back. */
  takeBack(tenant: string): void {
    const window = this.#open(tenant);
    if (window && window.count > 0) window.count--;
  }

  /** Returns the tenant's count in its current window. */
  count(tenant: string): number {
    return this.#open(tenant)?.count ?? 0;
  }

  /** Returns the whole seconds, at least one, until the tenant's window ends. */
  secondsLeft(tenant: string): number {
    const endsAt = this.#windows.get(tenant)?.endsAt ?? 0;
    return Math.max(1, Math.ceil((endsAt - this.#clock.now()) / 1000));
  }

  forgive(tenant: string): void {
    this.#windows.delete(tenant);
  }

  #open(tenant: string): Window | null {
    const window = this.#windows.get(tenant);
    return window && window.endsAt > this.#clock.now() ? window : null;
  }

  #begin(tenant: string): Window {
    const now = this.#clock.now();
    this.#windows.delete(tenant);
    for (const [oldest, { endsAt }] of this.#windows) {
      if (endsAt > now && this.#windows.size < MOST_PARTIES) break;
      this.#windows.delete(oldest);
    }
    const window = { endsAt: now + this.#lengthMs, count: 0 };
    this.#windows.set(tenant, window);
    return window;
  }
}
