import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import v8 from "node:v8";
import { Change } from "../../../src/store/kv.ts";
import { commitParameters } from "../../../src/store/postgres/parameters.ts";

Deno.test("a value that only looks like the one before it is encoded by itself", () => {
  const [, , , , , , values] = commitParameters([new Change().set(["a"], 0).set(["b"], -0)]);
  assert.ok(Buffer.from(values[1]!).includes(v8.serialize(-0)));
});
