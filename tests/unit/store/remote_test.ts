import assert from "node:assert/strict";
import { Change, type Kv } from "../../../src/store/kv.ts";
import { remoteEngine } from "../../../src/store/deno_kv/remote.ts";
import { type ManualClock, testRuntime } from "../../support/runtime.ts";

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

/** Asks each second for a change and a row, which the server does not answer in time. */
async function askFor(seconds: number, kv: Kv, clock: ManualClock): Promise<void> {
  const refused: Promise<void>[] = [];
  for (let i = 0; i < seconds; i++) {
    for (const asked of [kv.commit(change), kv.get(["k"])]) {
      refused.push(assert.rejects(asked, { name: "StoreError", code: "unavailable" }));
    }
    await clock.advance(1_000);
  }
  await clock.advance(10_000);
  await Promise.all(refused);
}

const change = new Change().set(["k"], "value");

Deno.test("while a Deno KV by URL is away, the operations that still run are few, however many are refused", async () => {
  const { clock, ...runtime } = testRuntime();
  const { native, begun, comeBack } = silentServer();
  const kv = remoteEngine(native, { runtime: { ...runtime, clock } });
  await askFor(120, kv, clock);
  // Those of the 10 s until the first is late are not refused.
  assert.ok(begun.commits <= 20, `${begun.commits} commits`);
  assert.ok(begun.reads <= 110, `${begun.reads} reads`);

  comeBack();
  await clock.advance(0);
  assert.equal(await kv.commit(change), "1");
  assert.equal((await kv.get(["k"])).value, null);
});

Deno.test("operations that never come to an end do not keep a Deno KV by URL closed for ever", async () => {
  const { clock, ...runtime } = testRuntime();
  const { native, begun } = silentServer();
  const kv = remoteEngine(native, { runtime: { ...runtime, clock } });
  await askFor(20, kv, clock);
  const before = begun.commits;
  await assert.rejects(kv.commit(change), { code: "unavailable" });
  assert.equal(begun.commits, before);

  await clock.advance(120_000);
  const again = assert.rejects(kv.commit(change), { code: "unavailable" });
  assert.equal(begun.commits, before + 1);
  await clock.advance(10_000);
  await again;
});
