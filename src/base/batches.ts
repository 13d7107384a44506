/** Divides work on many items, into batches or with pauses that leave the thread to others. */
import { type Clock, sleep } from "../runtime.ts";

/** Splits the items, in order, into batches of the given size; the last may be smaller. */
export function inBatches<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}

/** As `inBatches`, for an asynchronous sequence. */
export async function* batchesOf<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const item of items) {
    if (batch.push(item) < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Default number of items between two pauses: one round of the store. */
const AT_ONCE = 200;

/** Called after each item. Returns a pause as long as the last items took, if one is due; otherwise undefined. */
export type YieldPoint = () => Promise<void> | undefined;

export function makeYieldPoint(clock: Clock, atOnce = AT_ONCE): YieldPoint {
  let count = 0;
  let begun = clock.now();

  async function pause(ms: number): Promise<void> {
    await sleep(clock, ms);
    begun = clock.now();
  }

  return () => {
    if (++count % atOnce > 0) return undefined;
    const tookMs = clock.now() - begun;
    // Less than a millisecond is carried over to the next pause.
    return tookMs === 0 ? undefined : pause(tookMs);
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
