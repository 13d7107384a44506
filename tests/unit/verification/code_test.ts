import assert from "node:assert/strict";
import { codesIn, makeCode } from "../../../src/verification/code.ts";
import { testRuntime } from "../../support/runtime.ts";

Deno.test("a code has eight signs, none of which looks like another or makes a word", () => {
  const { random } = testRuntime(1);
  const codes = Array.from({ length: 500 }, () => makeCode(random));
  assert.equal(new Set(codes).size, codes.length);
  for (const code of codes) assert.match(code, /^[2-9CDFHJKMNPQRTVWXY]{8}$/);
});

const CODE = "7KQM2XPR";
const FOUND = [
  CODE,
  "7kqm2xpr",
  "Log in to Acme: 7KQM2XPR",
  "7KQM 2XPR",
  " 7 k q m\n2 x p r ",
  "7KQM-2XPR",
  "７ＫＱＭ２ＸＰＲ",
  "hello, my code is 7kqm2xpr. Thank you!",
  "\u200e7KQM2XPR\u200f",
];
for (const text of FOUND) {
  Deno.test(`the code is found in ${JSON.stringify(text)}`, () => assert.ok(codesIn(text).includes(CODE)));
}

Deno.test("what people write is seldom taken for a code", () => {
  for (const text of ["hello", "7KQM2XP", "7KQM2XP!R", "1. Delivery", "Can I come on Thursday at ten?", ""]) {
    assert.deepEqual(codesIn(text), [], text);
  }
});

Deno.test("a text of any length costs a bounded number of reads, and the longest purpose hides no code", () => {
  assert.equal(codesIn("234567".repeat(10_000)).length, 6);
  const { random } = testRuntime(2);
  const noise = Array.from({ length: 100 }, () => makeCode(random)).join("");
  assert.equal(codesIn(noise).length, 64);
  assert.ok(codesIn(`${noise.slice(0, 60)}: ${CODE}`).includes(CODE));
});
