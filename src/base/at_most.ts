import type { Clock } from "../runtime.ts";

/**
 * Limits an `LRUCache` to this many entries, each for so long where that is said. Its own `max` allocates room for all of
 * them at once: 40 bytes each, 400 KB a line for the devices of its recipients alone.
 */
export function atMost(entries: number, kept?: { forMs: number; clock: Clock }) {
  // It gives out what is exactly that old.
  const lifetime = kept && { ttl: kept.forMs - 1, ttlResolution: 0, perf: { now: () => kept.clock.now() } };
  return { maxSize: entries, sizeCalculation: () => 1, ...lifetime };
}
