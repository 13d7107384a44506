import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { makeSeal, SealError, sealKey } from "../../../src/store/seal.ts";
import { seededRandom } from "../../support/runtime.ts";

const seal = makeSeal(sealKey("a secret of the operator"), seededRandom(1));

Deno.test("what was sealed opens to the same bytes, whatever their number", () => {
  for (const length of [0, 1, 15, 16, 17, 100_000]) {
    const plain = seededRandom(length).bytes(length);
    assert.deepEqual(seal.open(seal.seal(plain)), plain);
  }
});

Deno.test("a sealed value shows nothing of what it holds, and is another one each time", () => {
  const plain = Buffer.from("pk_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
  const [one, two] = [seal.seal(plain), seal.seal(plain)];
  assert(!Buffer.from(one).includes("aaaa"));
  assert.notDeepEqual(one, two);
});

Deno.test("a value that was altered in any byte, cut or sealed with another key does not open", () => {
  const sealed = seal.seal(Buffer.from("secret"));
  for (let i = 0; i < sealed.length; i++) {
    assert.throws(() => seal.open(sealed.with(i, sealed[i]! ^ 1)), SealError, `byte ${i}`);
    assert.throws(() => seal.open(sealed.subarray(0, i)), SealError, `cut to ${i}`);
  }
  assert.throws(() => makeSeal(sealKey("another secret"), seededRandom(2)).open(sealed), SealError);
});

Deno.test("the same secret gives the same key of 32 bytes in every process", () => {
  assert.equal(sealKey("x").length, 32);
  assert.deepEqual(sealKey("x"), sealKey("x"));
  assert.notDeepEqual(sealKey("x"), sealKey("y"));
});
