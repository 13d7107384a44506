import assert from "node:assert/strict";
import { makeLinks } from "../../../src/panel/logins/links.ts";
import type { Person } from "../../../src/panel/rows.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

Deno.test("a person makes so many links an hour, which another's do not use up", async () => {
  const clock = new ManualClock();
  const links = makeLinks({ kv: new MemoryKv(), runtime: { ...testRuntime(), clock } });
  const make = (id: string) => links.make({ kind: "member", accountId: "acc_1" } as never, { id } as Person);
  for (let i = 0; i < 30; i++) await make("ana");
  await assert.rejects(make("ana"), { code: "too_many_attempts" });
  await make("ben");
  await clock.advance(60 * 60_000);
  await make("ana");
});
