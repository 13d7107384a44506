import assert from "node:assert/strict";
import { portionOf, type Share } from "../../../src/cluster/division.ts";
import { seededRandom } from "../../support/runtime.ts";

const member = (id: string, held: number, takes = true): Share => ({ id, held, takes });

Deno.test("free leases are divided without overlap, and shares differ by at most one", () => {
  const random = seededRandom(7);
  for (let round = 0; round < 200; round++) {
    const members = Array.from({ length: random.between(1, 9) }, (_, i) => member(`m${i}`, random.between(0, 20)));
    const free = random.between(0, 60);
    const portions = members.map(({ id }) => portionOf(id, members, free));
    const taken = portions.flatMap(({ from, take }) => Array.from({ length: take }, (_, i) => from + i));
    assert.equal(new Set(taken).size, taken.length, "one is taken twice");
    assert.ok(taken.every((place) => place < free));
    const surplus = portions.reduce((sum, portion) => sum + portion.surplus, 0);
    const after = members.map(({ held }, i) => held + portions[i]!.take - portions[i]!.surplus);
    // What is released now is taken in the next round.
    const total = members.reduce((sum, { held }) => sum + held, free);
    assert.ok(Math.max(...after) <= Math.ceil(total / members.length));
    assert.equal(after.reduce((sum, count) => sum + count, 0), total - surplus - (free - taken.length));
  }
});

Deno.test("where shares differ by at most one already, nothing moves", () => {
  const members = [member("a", 4), member("b", 3), member("c", 4)];
  for (const { id } of members) assert.equal(portionOf(id, members, 0).surplus, 0);
});

Deno.test("who takes nothing is left nothing, and its share goes to the others", () => {
  const members = [member("a", 5), member("b", 0, false), member("c", 0)];
  assert.deepEqual(portionOf("b", members, 4), { from: 0, take: 0, surplus: 0 });
  assert.deepEqual(portionOf("c", members, 4), { from: 0, take: 4, surplus: 0 });
  assert.deepEqual(portionOf("nobody", members, 4), { from: 0, take: 0, surplus: 0 });
});

Deno.test("while one that takes nothing still holds some, the others divide what is free evenly, and give up nothing", () => {
  const members = [member("a", 20), member("b", 10), member("c", 30, false), member("d", 10)];
  assert.deepEqual(members.map(({ id }) => portionOf(id, members, 20).take), [0, 10, 0, 10]);
  assert.ok(members.every(({ id }) => portionOf(id, members, 0).surplus === 0));
});
