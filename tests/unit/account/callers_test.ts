import assert from "node:assert/strict";
import type { AccountRecord } from "../../../src/account/rows.ts";
import { Callers } from "../../../src/account/callers.ts";
import { hashApiKey, makeApiKey } from "../../../src/account/api_key.ts";
import type { Kv } from "../../../src/store/kv.ts";
import { testRuntime } from "../../support/runtime.ts";
import { aPlan } from "../../support/send_world.ts";

Deno.test("accounts and keys are remembered for those who called last", async () => {
  const { clock, random } = testRuntime();
  const apiKeys = Array.from({ length: 10_001 }, () => makeApiKey(random));
  const rows = new Map<string, unknown>(apiKeys.flatMap((apiKey, i) => {
    const keyHash = hashApiKey(apiKey);
    return [[`api_key ${keyHash}`, `acc_${i}`], [`account acc_${i}`, { id: `acc_${i}`, keyHash } as AccountRecord]];
  }));
  let reads = 0;
  const slot = (key: readonly unknown[]) => ({ key, value: rows.get(key.join(" ")) ?? null, version: "1" });
  const get = (key: readonly unknown[]) => {
    if (key[1] === "acc_0") reads++;
    return Promise.resolve(slot(key));
  };
  const kv = { get, getMany: (keys: unknown[][]) => Promise.resolve(keys.map(slot)) } as unknown as Kv;
  const callers = new Callers({ kv, plans: { get: () => Promise.resolve(aPlan()) }, clock });

  const [first, ...others] = apiKeys;
  await callers.authenticate(first!);
  assert.equal(callers.recall(first!)?.account.id, "acc_0");
  assert.equal((await callers.of("acc_0"))?.account.id, "acc_0");
  assert.equal(reads, 1);
  for (const apiKey of others) await callers.authenticate(apiKey);
  assert.equal(callers.recall(first!), null);
  await callers.of("acc_0");
  assert.equal(reads, 2);
});
