/** A process's own clock, which can be wrong beside the others'. */
import { type Clock, steadyTime } from "../../src/runtime.ts";
import type { ManualClock } from "./runtime.ts";

export class SkewedClock implements Clock {
  readonly #of: ManualClock;
  #aheadMs: number;
  readonly now: () => number;

  constructor(of: ManualClock, aheadMs = 0) {
    this.#of = of;
    this.#aheadMs = aheadMs;
    this.now = steadyTime(() => of.wall() + this.#aheadMs, of.elapsed);
  }

  after(delayMs: number, run: () => void): () => void {
    return this.#of.after(delayMs, run);
  }

  /** Sets the clock of this process alone. */
  jump(ms: number): void {
    this.#aheadMs += ms;
  }
}

const HOUR_MS = 3_600_000;
const SPANS = { "an hour": HOUR_MS, "a day": 24 * HOUR_MS, "a year": 365 * 24 * HOUR_MS };

/** By how much, ms. */
export const WRONG_CLOCKS = Object.entries(SPANS).flatMap(([span, ms]): [string, number][] => [
  [`forward by ${span}`, ms],
  [`back by ${span}`, -ms],
]);
