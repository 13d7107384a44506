import type { Clock } from "../runtime.ts";

/**
 * Returns options that limit an `LRUCache` to this many entries, optionally with a maximum age. The cache's own `max`
 * allocates space for all entries in advance: 40 bytes each, or 400 KB per line for the devices of its recipients
 * alone.
 */
export function atMost(entries: number, kept?: { forMs: number; clock: Clock }) {
  // The cache still returns entries of exactly the maximum age.
  const lifetime = kept && { ttl: kept.forMs - 1, ttlResolution: 0, perf: kept.clock };
  return { maxSize: entries, sizeCalculation: () => 1, ...lifetime };
}
