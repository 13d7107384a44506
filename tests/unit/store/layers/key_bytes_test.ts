import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Key, KeyPart } from "../../../../src/store/kv.ts";
import { keyBytes, keyOfBytes } from "../../../../src/store/layers/key_bytes.ts";
import { seededRandom } from "../../../support/runtime.ts";

/** Parts of every kind, with many equal beginnings, zeros and signs among them. */
function randomKeys(count: number): Key[] {
  const random = seededRandom(7);
  const one = <T>(list: readonly T[]) => list[random.between(0, list.length - 1)]!;
  const parts: (() => KeyPart)[] = [
    () =>
      Array.from(
        { length: random.between(0, 3) },
        () => one(["", "a", "b", "\0", "\ufffd", "ÿ", "é", "😀", "\u{10ffff}"]),
      ).join(""),
    () => one([0, 1.5, 2, 1e300, 5e-324, Infinity]) * one([1, -1]),
  ];
  return Array.from(
    { length: count },
    () => ["k", ...Array.from({ length: random.between(1, 3) }, () => one(parts)())],
  );
}

Deno.test("the order of a key's bytes is that of Deno KV, and they read back as the key", async () => {
  using kv = await Deno.openKv(":memory:");
  const byBytes = new Map<string, Key>();
  for (const key of randomKeys(600)) {
    const bytes = keyBytes(key);
    assert.deepEqual(keyOfBytes(bytes), key);
    byBytes.set(bytes.toString("hex"), key);
    await kv.set(key, 1);
  }
  const sorted = [...byBytes].toSorted(([a], [b]) => Buffer.compare(Buffer.from(a, "hex"), Buffer.from(b, "hex")));
  const listed = await Array.fromAsync(kv.list({ prefix: ["k"] }), (entry) => entry.key as Key);
  assert.deepEqual(sorted.map(([, key]) => key), listed);
});

Deno.test("an empty key and one of more than 2 KiB are mistakes", () => {
  assert.throws(() => keyBytes([]), RangeError);
  assert.throws(() => keyBytes(["x".repeat(2048)]), RangeError);
  assert.ok(keyBytes(["x".repeat(2000)]).length < 2048);
});

Deno.test("bytes that are no key's are a mistake", () => {
  for (const bytes of [[1, 65, 0], [2, 65], [2, 0, 0xff], [0x21, 1, 2]]) {
    assert.throws(() => keyOfBytes(Uint8Array.from(bytes)), RangeError, String(bytes));
  }
});
