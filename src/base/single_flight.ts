/** When work runs: never twice at once, in a loop, or by a timer that many share. */
import type { Clock } from "../runtime.ts";

/** Returns a function that runs `work`; any number of calls during a run cause one more run. `work` must not reject. */
export function singleFlight(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let again = false;
  async function run(): Promise<void> {
    do {
      again = false;
      await work();
    } while (again);
    // Synchronously, not in a `finally` of the promise: a call in between would be lost.
    running = null;
  }
  return () => {
    again = running !== null;
    return running ??= run();
  };
}

/** Something expensive that is made on first use. */
export interface OnDemand<T> {
  /** Makes it once for all callers; after a failure the next call tries again. */
  need(): Promise<T>;
  /** Null until it is made. */
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

/** Periodic work that can also be run early. */
export class Loop {
  /** Runs the work now, or once more after the current run; resolves at its end. Does nothing unless started. */
  readonly now: () => Promise<void>;
  readonly #clock: Clock;
  #isRunning = false;
  #cancel = () => {};

  /** `work` resolves to the delay until the next run, ms, and must not reject. */
  constructor(clock: Clock, work: () => Promise<number>) {
    this.#clock = clock;
    this.now = singleFlight(async () => {
      this.#cancel();
      if (this.#isRunning) this.#after(await work());
    });
  }

  /** Starts the loop; the first run comes after the given delay, ms. */
  start(firstAfterMs: number): void {
    this.#isRunning = true;
    this.#after(firstAfterMs);
  }

  /** Stops the loop; resolves once no run is in progress. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    await this.now();
  }

  #after(delayMs: number): void {
    this.#cancel();
    if (this.#isRunning) this.#cancel = this.#clock.after(delayMs, () => void this.now());
  }
}

/**
 * Returns a timer that many periodic checks share, so that an idle line costs no wake-up of its own. It calls each
 * `look`, which must return at once and must not throw, for the first time within one period; the function returned for
 * a check ends it. The timer runs only while there is a check.
 */
export function makeRounds(clock: Clock, everyMs: number): (look: () => void) => () => void {
  const looks = new Set<() => void>();
  let cancel: (() => void) | null = null;

  function go(): void {
    cancel = clock.after(everyMs, go);
    for (const look of looks) look();
  }

  return (look) => {
    // A wrapper, because the same function may be given twice.
    const own = () => look();
    looks.add(own);
    cancel ??= clock.after(everyMs, go);
    return () => {
      looks.delete(own);
      if (looks.size > 0) return;
      cancel?.();
      cancel = null;
    };
  };
}
