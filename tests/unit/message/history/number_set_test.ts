import assert from "node:assert/strict";
import {
  clip,
  CONTAINER_SIZE,
  countOf,
  decodeNumbers,
  extendRow,
  intersect,
  newestIn,
  type NumberSet,
} from "../../../../src/message/history/number_set.ts";
import { seededRandom } from "../../../support/runtime.ts";

/** Oldest first. */
const allIn = (set: NumberSet) => newestIn(set, { skip: 0, limit: Infinity }).reverse();

const CONTAINER = 3;
const FIRST = CONTAINER * CONTAINER_SIZE + 1;
const LAST = FIRST + CONTAINER_SIZE - 1;

function someNumbers(count: number, random: ReturnType<typeof seededRandom>): number[] {
  const numbers = new Set([FIRST, LAST]);
  while (numbers.size < count) numbers.add(random.between(FIRST, LAST));
  return [...numbers].sort((a, b) => a - b);
}

const bitsOf = (numbers: readonly number[]) => decodeNumbers(extendRow(null, numbers));

for (const count of [2, 3_839, 3_840, 30_000]) {
  Deno.test(`a container of ${count} numbers comes back from its row, which is never larger than its bits`, () => {
    const numbers = someNumbers(count, seededRandom(count));
    const half = extendRow(null, numbers.slice(0, count / 2));
    const row = extendRow(half, numbers.slice(count / 2));
    assert.equal(row.length, Math.min(2 * count, CONTAINER_SIZE / 8));
    const bits = decodeNumbers(row);
    assert.equal(countOf(bits), count);
    assert.deepEqual(allIn({ container: CONTAINER, bits }), numbers);
  });
}

Deno.test("a row that the store gives from the middle of a buffer is read as well", () => {
  const row = extendRow(null, [FIRST, FIRST + 300]);
  const buffer = new Uint8Array(row.length + 1);
  buffer.set(row, 1);
  assert.deepEqual(allIn({ container: CONTAINER, bits: decodeNumbers(buffer.subarray(1)) }), [FIRST, FIRST + 300]);
});

Deno.test("any stretch of a set can be had, newest first", () => {
  const random = seededRandom(5);
  const numbers = someNumbers(5_000, random);
  const set = { container: CONTAINER, bits: bitsOf(numbers) };
  for (let i = 0; i < 20; i++) {
    const [skip, limit] = [random.between(0, 5_100), random.between(0, 100)];
    assert.deepEqual(newestIn(set, { skip, limit }), numbers.toReversed().slice(skip, skip + limit));
  }
});

Deno.test("sets are joined and clipped as plain lists are", () => {
  const random = seededRandom(7);
  const [some, others] = [someNumbers(9_000, random), someNumbers(9_000, random)];
  const bits = bitsOf(some);
  intersect(bits, bitsOf(others));
  const both = some.filter((number) => others.includes(number));
  assert.deepEqual(allIn({ container: CONTAINER, bits }), both);
  for (let i = 0; i < 20; i++) {
    const first = random.between(FIRST - 100, LAST + 100);
    const last = first + random.between(-1, 40_000);
    const clipped = bits.slice();
    clip(clipped, CONTAINER, { first, last });
    assert.deepEqual(
      allIn({ container: CONTAINER, bits: clipped }),
      both.filter((number) => number >= first && number <= last),
    );
  }
});
