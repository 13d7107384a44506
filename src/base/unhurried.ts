/** Going through many things without having all of the thread's time. */
import { type Clock, sleep } from "../runtime.ts";

/** Items between two rests unless it is said otherwise: a round of the store. */
const AT_ONCE = 200;

/** The items; after each so many it rests for as long as they took, what was done with them included. */
export async function* unhurried<T>(
  items: AsyncIterable<T> | Iterable<T>,
  clock: Clock,
  atOnce = AT_ONCE,
): AsyncGenerator<T> {
  let count = 0;
  let begun = clock.now();
  for await (const item of items) {
    yield item;
    if (++count % atOnce > 0) continue;
    const tookMs = clock.now() - begun;
    // What took less than a millisecond counts towards the next rest.
    if (tookMs === 0) continue;
    await sleep(clock, tookMs);
    begun = clock.now();
  }
}
