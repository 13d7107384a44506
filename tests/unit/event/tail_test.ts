import assert from "node:assert/strict";
import type { NewEvent } from "../../../src/event/event.ts";
import { Tails } from "../../../src/event/tail.ts";
import { Change, type Kv, type Range } from "../../../src/store/kv.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { settle, testRuntime } from "../../support/runtime.ts";
import { testEvents } from "../../support/bell.ts";

const about = { accountId: "acc_1", sessionId: "ses_1", sessionName: "one" };
const qr: NewEvent = { ...about, event: "session.qr", data: { qr: "x" } };
const connected: NewEvent = { ...about, event: "session.connected", data: { phone: "49" } };

/** What so many waiters for `session.connected` are told while others happen, and how often the log was read. */
async function flow(waiters: number) {
  const runtime = testRuntime();
  const store = new MemoryKv();
  let reads = 0;
  const kv: Kv = {
    ...store,
    list: <T>(range: Range<T>, options?: Parameters<Kv["list"]>[1]) => (reads++, store.list(range, options)),
  };
  const events = testEvents(kv, runtime);
  const tails = new Tails(events, runtime.clock);
  const emitted: (string | null)[][] = Array.from({ length: waiters }, () => []);
  const query = { types: ["session.connected" as const], sessionId: null };
  const leave = emitted.map((heard) => tails.subscribe("acc_1", query, (since) => void heard.push(since)));

  async function log(...logged: NewEvent[]): Promise<string[]> {
    const ids: string[] = [];
    for (const event of logged) {
      const change = new Change();
      const appended = events.append(change, event);
      await kv.commit(change);
      ids.push(appended.id!);
    }
    events.committed("acc_1");
    await settle();
    return ids;
  }

  try {
    await settle();
    for (let i = 0; i < 50; i++) await log(qr);
    const [before, , between, after] = await log(qr, connected, qr, connected);
    await log(qr);
    for (const end of leave) end();
    const atEnd = reads;
    await log(connected);
    assert.equal(reads, atEnd, "nobody listens any more");
    return { emitted, before, between, after, reads };
  } finally {
    store.close();
  }
}

Deno.test("however many wait at the end of a log, it is read once, and wakes those alone who ask for what happened", async () => {
  const one = await flow(1);
  const many = await flow(100);
  assert.equal(many.reads, one.reads);
  for (const heard of many.emitted) assert.deepEqual(heard, [null, many.before, many.between]);
});

Deno.test("a wake-up that was lost costs some seconds", async () => {
  const runtime = testRuntime();
  const kv = new MemoryKv();
  const events = testEvents(kv, runtime);
  const heard: (string | null)[] = [];
  const leave = new Tails(events, runtime.clock).subscribe(
    "acc_1",
    { types: null, sessionId: null },
    (since) => void heard.push(since),
  );
  await settle();
  const change = new Change();
  events.append(change, connected);
  await kv.commit(change);
  await settle();
  assert.deepEqual(heard, [null]);
  await runtime.clock.advance(15_000);
  await settle();
  assert.deepEqual(heard, [null, null]);
  leave();
  kv.close();
});
