/** Going through many things some at a time, without having all of the thread's. */
import { type Clock, sleep } from "../runtime.ts";

/** Items between two rests unless it is said otherwise: a round of the store. */
const AT_ONCE = 200;

/** Called after each item: a rest for as long as the last ones took, where one is due, else undefined. */
export type Rest = () => Promise<void> | undefined;

export function makeRest(clock: Clock, atOnce = AT_ONCE): Rest {
  let count = 0;
  let begun = clock.now();
  return () => {
    if (++count % atOnce > 0) return undefined;
    const tookMs = clock.now() - begun;
    // What took less than a millisecond counts towards the next rest.
    if (tookMs === 0) return undefined;
    return sleep(clock, tookMs).then(() => void (begun = clock.now()));
  };
}

/** The items; after each so many it rests for as long as they took, what was done with them included. */
export async function* unhurried<T>(
  items: AsyncIterable<T> | Iterable<T>,
  clock: Clock,
  atOnce = AT_ONCE,
): AsyncGenerator<T> {
  const rest = makeRest(clock, atOnce);
  for await (const item of items) {
    yield item;
    await rest();
  }
}

/** The items in their order, so many in each piece; fewer in the last. */
export function piecesOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}

/** As `piecesOf`, of items that come one after another. */
export async function* batchesOf<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const item of items) {
    if (batch.push(item) < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
