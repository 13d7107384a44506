/** Work that many ask for, or that comes again and again, and that never runs twice at once. */
import type { Clock } from "../runtime.ts";

/** Returns a function that runs `work`; all calls during a run lead to one more run after it. `work` must not reject. */
export function singleFlight(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let again = false;
  async function run(): Promise<void> {
    do {
      again = false;
      await work();
    } while (again);
    // Here, and not in a `finally` of the promise: a call in between would be lost.
    running = null;
  }
  return () => {
    again = running !== null;
    return running ??= run();
  };
}

/** What would cost a start much is made when something first needs it. */
export interface OnDemand<T> {
  /** Makes it, once for all who need it; what failed is tried again at the next need. */
  need(): Promise<T>;
  /** Null before it was made. */
  made(): T | null;
}

export function onDemand<T>(make: () => Promise<T>): OnDemand<T> {
  let making: Promise<T> | null = null;
  let result: T | null = null;

  async function attempt(): Promise<T> {
    try {
      return result = await make();
    } catch (error) {
      making = null;
      throw error;
    }
  }

  return {
    need: () => making ??= attempt(),
    made: () => result,
  };
}

/** Work that comes again after a time, and sooner when somebody asks. */
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
