/** The real clock that a test can put forward: minutes pass at once, and everything that was due in them happens. */
import { type Clock, systemClock } from "../../src/runtime.ts";

interface Timer {
  at: number;
  run: () => void;
  cancel: () => void;
}

export class LeapClock implements Clock {
  #ahead = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return systemClock.now() + this.#ahead;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer: Timer = { at: this.now() + delayMs, run, cancel: () => {} };
    this.#timers.add(timer);
    this.#wait(timer);
    return () => {
      timer.cancel();
      this.#timers.delete(timer);
    };
  }

  /** Puts the clock forward. Timers that are due by then run at once, in their order, each after what came before it. */
  leap(ms: number): void {
    this.#ahead += ms;
    for (const timer of [...this.#timers].sort((a, b) => a.at - b.at)) {
      timer.cancel();
      this.#wait(timer);
    }
  }

  #wait(timer: Timer): void {
    timer.cancel = systemClock.after(timer.at - this.now(), () => {
      this.#timers.delete(timer);
      timer.run();
    });
  }
}
