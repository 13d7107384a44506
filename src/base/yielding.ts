/** Going through many things without having all of the thread's time. */
import { type Clock, sleep } from "../runtime.ts";

/** Items between two pauses unless it is said otherwise: a round of the store. */
const AT_ONCE = 200;

/** Called after each item: a pause for as long as the last ones took, where one is due, else undefined. */
export type YieldPoint = () => Promise<void> | undefined;

export function makeYieldPoint(clock: Clock, atOnce = AT_ONCE): YieldPoint {
  let count = 0;
  let begun = clock.now();
  return () => {
    if (++count % atOnce > 0) return undefined;
    const tookMs = clock.now() - begun;
    // What took less than a millisecond counts towards the next pause.
    if (tookMs === 0) return undefined;
    return sleep(clock, tookMs).then(() => void (begun = clock.now()));
  };
}

/** The items; after each so many it pauses for as long as they took, what was done with them included. */
export async function* yielding<T>(
  items: AsyncIterable<T> | Iterable<T>,
  clock: Clock,
  atOnce = AT_ONCE,
): AsyncGenerator<T> {
  const yieldPoint = makeYieldPoint(clock, atOnce);
  for await (const item of items) {
    yield item;
    await yieldPoint();
  }
}
