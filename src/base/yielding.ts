/** Iterates over many items without monopolising the thread. */
import { type Clock, sleep } from "../runtime.ts";

/** Default number of items between two pauses: one round of the store. */
const AT_ONCE = 200;

/** Called after each item. Returns a pause as long as the last items took, if one is due; otherwise undefined. */
export type YieldPoint = () => Promise<void> | undefined;

export function makeYieldPoint(clock: Clock, atOnce = AT_ONCE): YieldPoint {
  let count = 0;
  let begun = clock.now();
  return () => {
    if (++count % atOnce > 0) return undefined;
    const tookMs = clock.now() - begun;
    // Less than a millisecond is carried over to the next pause.
    if (tookMs === 0) return undefined;
    return sleep(clock, tookMs).then(() => void (begun = clock.now()));
  };
}

/** Yields the items; after every `atOnce` of them it pauses as long as they took, including the consumer's work. */
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
