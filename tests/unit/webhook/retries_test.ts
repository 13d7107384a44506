import assert from "node:assert/strict";
import type { LoggedEvent } from "../../../src/event/event.ts";
import { eventKeys } from "../../../src/event/rows.ts";
import { webhookKeys } from "../../../src/webhook/rows.ts";
import { Change, type Range } from "../../../src/store/kv.ts";
import { makeRetries } from "../../../src/webhook/retries.ts";
import type { WebhookRow } from "../../../src/webhook/webhook.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { ManualClock, settle } from "../../support/runtime.ts";

Deno.test("an attempt that is written down while the waiting rows are read is not made again", async () => {
  const clock = new ManualClock();
  const kv = new MemoryKv();
  const row = webhookKeys.dueAttempt("whk_1", clock.now(), "0001");
  await kv.commit(new Change().set(row, 1).set(eventKeys.event("acc_1", "0001"), {} as LoggedEvent));
  let attempts = 0;
  const retries = makeRetries({ kv, clock }, {
    webhook: () => ({ id: "whk_1", accountId: "acc_1", active: true }) as WebhookRow,
    attempt() {
      attempts++;
      return Promise.resolve("made");
    },
    wakeAt: () => assert.fail("nothing is due later"),
    failed: (error) => assert.fail(String(error)),
    stopped: new AbortController().signal,
  });
  retries.takeUp();
  await settle();
  assert.equal(attempts, 1);

  const read = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const list = kv.list.bind(kv);
  kv.list = async function* <T>(range: Range<T>) {
    const rows = await Array.fromAsync(list(range));
    read.resolve();
    await goOn.promise;
    yield* rows;
  };
  retries.takeUp();
  await read.promise;
  await kv.commit(new Change().delete(row));
  retries.written(["0001"]);
  goOn.resolve();
  await settle();
  assert.equal(attempts, 1);
});

Deno.test("an attempt that a clock years ahead has planned is made once the clock is right", async () => {
  const clock = new ManualClock();
  const kv = new MemoryKv();
  const hours = (count: number) => clock.now() + count * 3_600_000;
  for (const [order, dueAt] of [["0001", hours(1)], ["0002", hours(100_000)]] as const) {
    const row = webhookKeys.dueAttempt("whk_1", dueAt, order);
    await kv.commit(new Change().set(row, 1).set(eventKeys.event("acc_1", order), {} as LoggedEvent));
  }
  const made: number[] = [];
  const woken: number[] = [];
  const retries = makeRetries({ kv, clock }, {
    webhook: () => ({ id: "whk_1", accountId: "acc_1", active: true }) as WebhookRow,
    async attempt(due) {
      const dueAt = due.dueAt!;
      made.push(dueAt);
      await kv.commit(
        new Change().delete(webhookKeys.dueAttempt("whk_1", dueAt, dueAt === hours(0) ? "0001" : "0002")),
      );
      return "made";
    },
    wakeAt: (at) => void woken.push(at),
    failed: (error) => assert.fail(String(error)),
    stopped: new AbortController().signal,
  });
  retries.takeUp();
  await settle();
  assert.deepEqual([made, woken], [[], [hours(1)]]);
  await clock.advance(3_600_000);
  retries.takeUp();
  await settle();
  assert.equal(made.length, 2);
});
