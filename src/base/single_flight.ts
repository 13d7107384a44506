/** Work that many may ask for, of which one run is under way at a time. */

/** A function that runs `work`; asked while it runs, `work` runs once more afterwards. `work` must not reject. */
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
