/** Work that comes again and again: after a time, sooner when somebody asks, and never twice at once. */
import type { Clock } from "../runtime.ts";
import { singleFlight } from "./single_flight.ts";

export class Loop {
  /** Now, or once more after what is under way; resolves at its end. Does nothing before the start and after the stop. */
  readonly now: () => Promise<void>;
  readonly #clock: Clock;
  #isRunning = false;
  #cancel = () => {};

  /** `work` resolves to how long it is not needed again, milliseconds, and must not reject. */
  constructor(clock: Clock, work: () => Promise<number>) {
    this.#clock = clock;
    this.now = singleFlight(async () => {
      this.#cancel();
      if (this.#isRunning) this.#after(await work());
    });
  }

  /** The first work comes after so many milliseconds. */
  start(firstAfterMs: number): void {
    this.#isRunning = true;
    this.#after(firstAfterMs);
  }

  /** No work begins any more; resolves when none is under way. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    await this.now();
  }

  #after(delayMs: number): void {
    this.#cancel();
    if (this.#isRunning) this.#cancel = this.#clock.after(delayMs, () => void this.now());
  }
}
