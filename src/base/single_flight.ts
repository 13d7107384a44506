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
