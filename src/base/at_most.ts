/**
 * Bounds an `LRUCache` to so many entries. Its own `max` takes the room of all of them at once: 40 bytes each, 400 KB a
 * line for the devices of its recipients alone.
 */
export function atMost(entries: number): { maxSize: number; sizeCalculation: () => number } {
  return { maxSize: entries, sizeCalculation: () => 1 };
}
