/** How long messages of chats stay: read once a chat, and what is learned counts from then on. */
import assert from "node:assert/strict";
import { openDenoKv } from "../../../src/store/deno_kv/deno_kv.ts";
import { StoreError } from "../../../src/store/kv.ts";
import { makeDisappearingTimers } from "../../../src/whatsapp/baileys/disappearing.ts";
import { failingKv } from "../../support/failing_kv.ts";
import { testRuntime } from "../../support/runtime.ts";

const ANA = "4917000000001@s.whatsapp.net";
const LID = "900@lid";
const DAY = { seconds: 86_400, setAt: 100 };
const WEEK = { seconds: 604_800, setAt: 200 };

Deno.test("a chat's timer is read once, and what a message says of it counts at once and is kept", async () => {
  const kv = failingKv(await openDenoKv(":memory:", { runtime: testRuntime() }));
  let reads = 0;
  const { getMany } = kv;
  kv.getMany = (keys) => {
    reads += keys.length;
    return getMany(keys);
  };
  const timers = makeDisappearingTimers({ kv, lineId: "ses_1" });
  assert.equal(await timers.of(ANA), null);
  assert.equal(await timers.of(ANA), null);
  await timers.learn([ANA, LID], DAY);
  assert.deepEqual(await timers.of(ANA), DAY);
  assert.equal(reads, 2, "one of each name");

  kv.fails = () => true;
  await assert.rejects(timers.learn([ANA], WEEK), StoreError);
  assert.deepEqual(await timers.of(ANA), DAY, "what is not kept does not count");
  kv.fails = () => false;
  await timers.learn([ANA], WEEK);
  await timers.learn([ANA], DAY);
  assert.equal(kv.commits.length, 2, "older news is ignored");
  assert.deepEqual(await makeDisappearingTimers({ kv, lineId: "ses_1" }).of(ANA), WEEK);
  assert.deepEqual(await makeDisappearingTimers({ kv, lineId: "ses_1" }).of(LID), DAY);
  kv.close();
});

Deno.test("a timer that is learned while it is read is not forgotten again", async () => {
  const kv = await openDenoKv(":memory:", { runtime: testRuntime() });
  const read = Promise.withResolvers<void>();
  const { getMany } = kv;
  let isSlow = true;
  const timers = makeDisappearingTimers({
    kv: {
      ...kv,
      async getMany(keys) {
        const slow = isSlow;
        isSlow = false;
        const slots = await getMany(keys);
        if (slow) await read.promise;
        return slots;
      },
    },
    lineId: "ses_1",
  });
  const early = timers.of(ANA);
  await timers.learn([ANA], DAY);
  read.resolve();
  await early;
  assert.deepEqual(await timers.of(ANA), DAY);
  kv.close();
});
