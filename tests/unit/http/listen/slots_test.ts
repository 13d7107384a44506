import assert from "node:assert/strict";
import { makeSlots } from "../../../../src/http/listen/slots.ts";

Deno.test("all addresses of a subscriber to IPv6 have the slots of one", () => {
  const slots = makeSlots({ inAll: 20, ofAddress: 3, isShared: () => false });
  const closed: number[] = [];
  for (let i = 0; i < 5; i++) {
    assert.ok(slots.take(`2001:db8:0:1::${i}`, () => closed.push(i)));
  }
  assert.deepEqual(closed, [0, 1]);
  assert.equal(slots.taken(), 3);
  assert.ok(slots.take("2001:db8:0:2::1", () => closed.push(-1)));
  assert.equal(slots.taken(), 4);
});
