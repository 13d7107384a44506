import assert from "node:assert/strict";
import { makeAccountKeys } from "../../../src/account/keys.ts";
import type { Callers } from "../../../src/account/callers.ts";
import { accountKeys } from "../../../src/account/rows.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { settle, testRuntime } from "../../support/runtime.ts";

const NEW_KEY = { name: "shop", scopes: ["send" as const], allowedIps: [], allowedDomains: [] };

Deno.test("the last use of a key is noted to the minute", async () => {
  const kv = new MemoryKv();
  const runtime = testRuntime();
  const callers = { of: () => Promise.resolve({}) } as unknown as Callers;
  const keys = makeAccountKeys({ kv, callers, runtime });
  const { key, apiKey } = await keys.create("acc_1", NEW_KEY);
  const notedAfter = async (ms: number) => {
    await runtime.clock.advance(ms);
    await keys.authenticate(apiKey);
    await settle();
    return (await kv.get(accountKeys.keyUsed(key.id))).value;
  };
  const first = runtime.clock.now();
  assert.equal(await notedAfter(0), first);
  assert.equal(await notedAfter(59_999), first);
  assert.equal(await notedAfter(1), first + 60_000);
});

Deno.test("a key that is removed while it is used leaves no row behind", async () => {
  const kv = new MemoryKv();
  const asked = Promise.withResolvers<void>();
  const callers = { of: () => asked.promise.then(() => ({})) } as unknown as Callers;
  const keys = makeAccountKeys({ kv, callers, runtime: testRuntime() });
  const { key, apiKey } = await keys.create("acc_1", NEW_KEY);
  const using = keys.authenticate(apiKey);
  await settle();
  await keys.remove("acc_1", key.id);
  asked.resolve();
  await using;
  await settle();
  assert.equal((await kv.get(accountKeys.keyUsed(key.id))).value, null);
});
