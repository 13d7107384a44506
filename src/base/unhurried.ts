/** Going through many rows without having all of the thread's time. */
import { type Clock, sleep } from "../runtime.ts";

/** Items between two rests: a round of the store. */
const AT_ONCE = 200;

/** The items; after each so many it rests for as long as they took, what was done with them included. */
export async function* unhurried<T>(items: AsyncIterable<T>, clock: Clock): AsyncGenerator<T> {
  let count = 0;
  let begun = clock.now();
  for await (const item of items) {
    yield item;
    if (++count % AT_ONCE > 0) continue;
    const tookMs = clock.now() - begun;
    if (tookMs > 0) await sleep(clock, tookMs);
    begun = clock.now();
  }
}
