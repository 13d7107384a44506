/** Work that many ask for and that never runs twice at once. */

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
