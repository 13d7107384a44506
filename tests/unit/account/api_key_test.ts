import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { hashApiKey, isApiKeyShaped, makeApiKey } from "../../../src/account/api_key.ts";
import { seededRandom } from "../../support/runtime.ts";

Deno.test("a key is recognisable, carries 32 random bytes, and is found by its SHA-256", () => {
  const key = makeApiKey(seededRandom(1));
  assert.match(key, /^pk_[A-Za-z0-9_-]{43}$/);
  assert(isApiKeyShaped(key));
  assert.notEqual(key, makeApiKey(seededRandom(2)));
  assert.equal(hashApiKey(key), createHash("sha256").update(key).digest("hex"));
});

Deno.test("garbage is not taken for a key", () => {
  for (const text of ["", "pk_", "pk_short", `sk_${"a".repeat(43)}`, `pk_${"a".repeat(44)}`, `pk_${"é".repeat(43)}`]) {
    assert(!isApiKeyShaped(text), text);
  }
});
