/**
 * Sets of history numbers, stored like roaring bitmaps: in containers of 61,440 consecutive numbers, each one row. A
 * sparse container lists its numbers in two bytes each; a dense one has a bit for every possible number. In memory a
 * container is always a bitmap, so that sets are intersected word by word.
 */

/** Numbers covered by a container: 32 stretches of the status index, and few enough for two-byte offsets. */
export const CONTAINER_SIZE = 61_440;
const WORDS = CONTAINER_SIZE / 32;
/** From this many numbers on, a bitmap is smaller than a list. */
const DENSE = CONTAINER_SIZE / 16;

/** The bitmap of a container; bit 0 is its first number. */
type Bits = Uint32Array<ArrayBuffer>;

/** The part of a set that lies in one container. */
export interface NumberSet {
  container: number;
  bits: Bits;
}

/** Returns the container that holds the history number. */
export function containerOf(historyNumber: number): number {
  return Math.floor((historyNumber - 1) / CONTAINER_SIZE);
}

export function noNumbers(): Bits {
  return new Uint32Array(WORDS);
}

function addNumber(bits: Bits, historyNumber: number): void {
  const offset = (historyNumber - 1) % CONTAINER_SIZE;
  bits[offset >>> 5]! |= 1 << (offset & 31);
}

/** Returns the container's row with these numbers added; they must be ascending and greater than all numbers in it. */
export function extendRow(row: Uint8Array | null, historyNumbers: readonly number[]): Uint8Array<ArrayBuffer> {
  const listed = (row?.length ?? 0) / 2;
  if (listed + historyNumbers.length < DENSE) {
    const list = new Uint16Array(listed + historyNumbers.length);
    const bytes = new Uint8Array(list.buffer);
    if (row) bytes.set(row);
    list.set(historyNumbers.map((number) => (number - 1) % CONTAINER_SIZE), listed);
    return bytes;
  }
  const bits = decodeNumbers(row);
  for (const number of historyNumbers) addNumber(bits, number);
  return new Uint8Array(bits.buffer);
}

/** Returns the container's row with only the numbers above `floor`; null if there are none. */
export function rowAbove(row: Uint8Array, container: number, floor: number): Uint8Array<ArrayBuffer> | null {
  const bits = decodeNumbers(row);
  clip(bits, container, { first: floor + 1, last: Infinity });
  const left = newestIn({ container, bits }, { skip: 0, limit: CONTAINER_SIZE });
  return left.length === 0 ? null : extendRow(null, left.reverse());
}

export function decodeNumbers(row: Uint8Array | null): Bits {
  if (row === null) return noNumbers();
  // Copied, because the wider views need an aligned buffer that begins at 0.
  const { buffer } = new Uint8Array(row);
  if (row.length === WORDS * 4) return new Uint32Array(buffer);
  const bits = noNumbers();
  for (const offset of new Uint16Array(buffer)) bits[offset >>> 5]! |= 1 << (offset & 31);
  return bits;
}

/** Clears the bits that are not set in `others`. */
export function intersect(bits: Uint32Array, others: Uint32Array): void {
  for (let i = 0; i < bits.length; i++) bits[i]! &= others[i]!;
}

/** Clears the bits of history numbers outside `first` to `last`. */
export function clip(bits: Bits, container: number, { first, last }: { first: number; last: number }): void {
  const start = container * CONTAINER_SIZE + 1;
  const [from, to] = [first - start, last - start];
  for (let word = 0; word < WORDS; word++) {
    const low = word * 32;
    if (from <= low && to >= low + 31) continue;
    for (let bit = 0; bit < 32; bit++) if (low + bit < from || low + bit > to) bits[word]! &= ~(1 << bit);
  }
}

export function countOf(bits: Bits): number {
  let count = 0;
  for (const word of bits) count += countOfWord(word);
  return count;
}

/** Returns up to `limit` history numbers of the set, newest first, after skipping `skip` of them. */
export function newestIn({ container, bits }: NumberSet, { skip, limit }: { skip: number; limit: number }): number[] {
  const found: number[] = [];
  const start = container * CONTAINER_SIZE + 1;
  for (let i = bits.length - 1; i >= 0 && found.length < limit; i--) {
    const count = countOfWord(bits[i]!);
    if (skip >= count) {
      skip -= count;
      continue;
    }
    for (let bit = 31; bit >= 0 && found.length < limit; bit--) {
      if ((bits[i]! >>> bit & 1) === 0) continue;
      if (skip > 0) skip--;
      else found.push(start + i * 32 + bit);
    }
  }
  return found;
}

function countOfWord(word: number): number {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
