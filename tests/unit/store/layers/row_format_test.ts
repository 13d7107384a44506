import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import v8 from "node:v8";
import { openDenoKv } from "../../../../src/store/deno_kv/deno_kv.ts";
import { Change } from "../../../../src/store/kv.ts";
import { decodeRow, deserialise, serialise } from "../../../../src/store/layers/row_format.ts";
import { testRuntime } from "../../../support/runtime.ts";

Deno.test("any value comes back as it was, in no more bytes than two a character", () => {
  const values = [
    "",
    "half of a character: \ud83d",
    { text: "日本語".repeat(50_000) },
    { text: "e\u0301 \u{1f600}".repeat(10_000), list: [1, null, true, { deep: [] }] },
    { absent: undefined },
    [-0, NaN, 12n],
    JSON.parse('{"__proto__":{"a":1}}'),
    { toJSON: 1 },
    new Map([["a", new Set([1])]]),
    { bytes: Uint8Array.of(0xff, 0), at: new Date(5) },
    Uint8Array.of(),
    Uint8Array.of(0xff, 2, 3),
  ];
  for (const value of values) {
    const bytes = serialise(value);
    assert.deepEqual(deserialise(bytes), value);
    assert.deepEqual(deserialise(Buffer.concat([Buffer.from("ahead"), bytes]).subarray(5)), value);
    assert.deepEqual(decodeRow(bytes), { kind: "value", value });
    const text = typeof value === "object" && "text" in value ? JSON.stringify(value) : null;
    if (text) assert.ok(bytes.length <= 2 * text.length + 1, `${bytes.length} for ${text.length}`);
  }
  const plain = deserialise(serialise(Buffer.from("a buffer")));
  assert.equal(Object.getPrototypeOf(plain), Uint8Array.prototype);
});

Deno.test("what earlier versions wrote is read", () => {
  const value = { text: "x".repeat(40_000), bytes: Uint8Array.of(7) };
  const written = v8.serialize(value);
  assert.deepEqual(decodeRow(new Uint8Array([1, ...written])), { kind: "value", value });
  assert.deepEqual(decodeRow(new Uint8Array([3, 7, 8])), { kind: "value", value: Uint8Array.of(7, 8) });
  assert.deepEqual(deserialise(written), value);
});

Deno.test("long values that were read leave the memory with those who read them", async () => {
  const kv = await openDenoKv(":memory:", { runtime: testRuntime() });
  try {
    const text = "ł".repeat(65_536);
    await kv.commit(new Change().set(["text"], { text }).set(["bytes"], new Uint8Array(130_000)));
    const before = v8.getHeapStatistics();
    for (let i = 0; i < 400; i++) {
      assert.equal((await kv.get<{ text: string }>(["text"])).value!.text.length, text.length);
      assert.equal((await kv.get<Uint8Array>(["bytes"])).value!.length, 130_000);
    }
    const after = v8.getHeapStatistics();
    // Those of 400 reads: 53 and 107 MB.
    assert.ok(after.used_heap_size - before.used_heap_size < 30_000_000, `${after.used_heap_size / 1e6} MB`);
    assert.ok(after.external_memory - before.external_memory < 80_000_000, `${after.external_memory / 1e6} MB`);
  } finally {
    kv.close();
  }
});
