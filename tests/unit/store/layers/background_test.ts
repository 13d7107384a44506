/** Work that can wait leaves half of the store's time to others. */
import assert from "node:assert/strict";
import { withBackgroundThrottle } from "../../../../src/store/layers/background.ts";
import { Change, type Kv } from "../../../../src/store/kv.ts";
import { bytesHeld } from "../../../support/garbage.ts";
import { testRuntime } from "../../../support/runtime.ts";

const TAKES_MS = 10;

/** A store whose commits take a while, and when each of them began. */
function slowKv() {
  const { clock } = testRuntime();
  const begun: number[] = [];
  const start = clock.now();
  const bare = {
    async commit() {
      begun.push(clock.now() - start);
      await new Promise<void>((resolve) => clock.after(TAKES_MS, resolve));
      return "v1";
    },
  } as unknown as Kv;
  return { kv: withBackgroundThrottle(bare, { clock }), clock, begun };
}

async function fourInBackground(kv: Kv): Promise<void> {
  for (let i = 0; i < 4; i++) await kv.commit(new Change(), { background: true });
}

Deno.test("beside others each commit that can wait is followed by a rest as long as it took", async () => {
  const { kv, clock, begun } = slowKv();
  const other = kv.commit(new Change());
  const work = fourInBackground(kv);
  await clock.advance(10 * TAKES_MS);
  await Promise.all([other, work]);
  assert.deepEqual(begun, [0, 0, 20, 40, 60]);
});

Deno.test("whoever is alone does not rest, and others never do", async () => {
  const { kv, clock, begun } = slowKv();
  const work = fourInBackground(kv);
  await clock.advance(4 * TAKES_MS);
  await work;
  assert.deepEqual(begun, [0, 10, 20, 30]);
  begun.length = 0;
  const others = Promise.all(Array.from({ length: 3 }, () => kv.commit(new Change())));
  await clock.advance(TAKES_MS);
  await others;
  assert.deepEqual(begun, [40, 40, 40]);
});

Deno.test("of rests that are over nothing is kept", async () => {
  let now = 0;
  const clock = {
    now: () => now,
    after: (ms: number, run: () => void) => (queueMicrotask(() => {
      now += ms;
      run();
    }),
      () => {}),
  };
  const kv = withBackgroundThrottle({ commit: () => Promise.resolve(String(now++)) } as unknown as Kv, { clock });
  async function commits(count: number): Promise<number> {
    for (let i = 0; i < count; i++) {
      await kv.commit(new Change());
      await kv.commit(new Change(), { background: true });
    }
    return bytesHeld();
  }
  const before = await commits(1_000);
  assert((await commits(50_000)) - before < 1_000_000);
});
