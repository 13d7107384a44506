import assert from "node:assert/strict";
import { Change } from "../../../src/store/kv.ts";
import { remoteEngine } from "../../../src/store/deno_kv/remote.ts";
import { testRuntime } from "../../support/runtime.ts";

/** A server that answers nothing until `comeBack`, as the runtime's retries present it. */
function silentServer() {
  const back = Promise.withResolvers<void>();
  const begun = { commits: 0, reads: 0 };
  async function answer<T>(kind: keyof typeof begun, value: T): Promise<T> {
    begun[kind]++;
    await back.promise;
    return value;
  }
  const atomic = {
    set: () => atomic,
    commit: () => answer("commits", { ok: true, versionstamp: "1" }),
  };
  const native = {
    atomic: () => atomic,
    get: (key: Deno.KvKey) => answer("reads", { key, value: null, versionstamp: null }),
  } as unknown as Deno.Kv;
  return { native, begun, comeBack: back.resolve };
}

Deno.test("while a Deno KV by URL is away, the operations that still run are few, however many are refused", async () => {
  const runtime = testRuntime();
  const { native, begun, comeBack } = silentServer();
  const kv = remoteEngine(native, { runtime });
  const change = new Change().set(["k"], "value");
  for (let i = 0; i < 200; i++) {
    const refused = [kv.commit(change), kv.get(["k"])]
      .map((asked) => assert.rejects(asked, { name: "StoreError", code: "unavailable" }));
    await runtime.clock.advance(10_000);
    await Promise.all(refused);
  }
  assert.ok(begun.commits <= 8, `${begun.commits} commits`);
  assert.ok(begun.reads <= 100, `${begun.reads} reads`);

  comeBack();
  await runtime.clock.advance(0);
  assert.equal(await kv.commit(change), "1");
  assert.equal((await kv.get(["k"])).value, null);
});
