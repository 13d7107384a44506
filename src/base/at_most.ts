/**
 * Limits an `LRUCache` to this many entries. Its own `max` allocates room for all of them at once: 40 bytes each, 400 KB a
 * line for the devices of its recipients alone.
 */
export function atMost(entries: number): { maxSize: number; sizeCalculation: () => number } {
  return { maxSize: entries, sizeCalculation: () => 1 };
}
