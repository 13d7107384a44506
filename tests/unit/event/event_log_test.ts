import assert from "node:assert/strict";
import { Problem } from "../../../src/errors.ts";
import { EVENT_NAMES, type EventName, type NewEvent } from "../../../src/event/event.ts";
import { type EventQuery } from "../../../src/event/event_log.ts";
import { plain } from "../../../src/event/plain_json.ts";
import { envelopeSchema } from "../../../src/event/schema.ts";
import { sweepEvents, sweepSurplus } from "../../../src/event/sweep.ts";
import { openDenoKv } from "../../../src/store/deno_kv/deno_kv.ts";
import { eventKeys } from "../../../src/event/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { testEvents } from "../../support/bell.ts";

const DAY_MS = 24 * 3_600_000;

async function stage() {
  const runtime = testRuntime();
  const kv = await openDenoKv(":memory:", { runtime });
  const events = testEvents(kv, runtime);
  const forgotten: string[] = [];
  return {
    forgotten,
    runtime,
    kv,
    events,
    async log(event: NewEvent): Promise<string> {
      const change = new Change();
      const appended = events.append(change, event);
      assert.ok(await kv.commit(change));
      return appended.id!;
    },
    swept: (options: Parameters<typeof sweepEvents>[2]) => runtime.clock.during(sweepEvents(kv, runtime, options)),
    sweptOver: (options: Omit<Parameters<typeof sweepSurplus>[2], "forget">) =>
      runtime.clock.during(sweepSurplus(kv, runtime, {
        ...options,
        forget: (events) => Promise.resolve(void forgotten.push(...events.map(({ id }) => id))),
      })),
    [Symbol.dispose]: () => kv.close(),
  };
}

function qr(number: number, { accountId = "acc_1", sessionId = "ses_1" } = {}): NewEvent {
  return { event: "session.qr", accountId, sessionId, sessionName: "Front desk", data: { qr: `data:${number}` } };
}

const connected: NewEvent = {
  event: "session.connected",
  accountId: "acc_1",
  sessionId: "ses_1",
  sessionName: "",
  data: { phone: "49" },
};
const query = (change: Partial<EventQuery> = {}): EventQuery => ({
  after: null,
  types: null,
  sessionId: null,
  limit: 100,
  ...change,
});

Deno.test("the feed gives every event once, oldest first, page by page, and ends with null", async () => {
  using s = await stage();
  const ids: string[] = [];
  for (let i = 0; i < 25; i++) ids.push(await s.log(qr(i)));
  await s.log(qr(99, { accountId: "acc_2" }));
  const seen: string[] = [];
  for (let after: string | null = null;;) {
    const { events, next } = await s.events.read("acc_1", query({ after, limit: 10 }));
    if (next === null) break;
    assert.equal(next, events.at(-1)?.id);
    seen.push(...events.map(({ id }) => id));
    after = next;
  }
  assert.deepEqual(seen, ids);
  assert.deepEqual(seen, [...seen].sort());
});

Deno.test("an event is in the log exactly when its commit succeeded", async () => {
  using s = await stage();
  const refused = new Change().check({ key: eventKeys.eventFloor("acc_1"), version: "00000000000000000001" });
  s.events.append(refused, qr(1));
  assert.equal(await s.kv.commit(refused), null);
  assert.deepEqual((await s.events.read("acc_1", query())).events, []);
  await s.log(qr(2));
  assert.deepEqual((await s.events.read("acc_1", query())).events.map(({ data }) => data), [{ qr: "data:2" }]);
});

Deno.test("a reader that follows while a hundred writers commit never misses one", async () => {
  using s = await stage();
  const writing = Promise.all(Array.from({ length: 100 }, async (_, i) => {
    for (let round = 0; round < 5; round++) await s.log(qr(i * 100 + round));
  }));
  let done = false;
  void writing.then(() => done = true);
  const seen: string[] = [];
  for (let after: string | null = null, last = false; !last;) {
    last = done;
    const page = await s.events.read("acc_1", query({ after, limit: 7 }));
    seen.push(...page.events.map(({ id }) => id));
    if (page.next !== null) last = false;
    after = page.next ?? after;
  }
  await writing;
  assert.equal(new Set(seen).size, 500);
  assert.deepEqual(seen, [...seen].sort());
});

Deno.test("types and session narrow the feed; a page may then be empty and still lead on", async () => {
  using s = await stage();
  for (let i = 0; i < 6; i++) {
    const change = new Change();
    for (let k = 0; k < 400; k++) s.events.append(change, qr(k));
    await s.kv.commit(change);
  }
  const wanted = await s.log(connected);
  await s.log(qr(1, { sessionId: "ses_2" }));
  const first = await s.events.read("acc_1", query({ types: ["session.connected"], limit: 5 }));
  assert.deepEqual(first.events, []);
  assert.notEqual(first.next, null);
  const second = await s.events.read("acc_1", query({ types: ["session.connected"], limit: 5, after: first.next }));
  assert.deepEqual(second.events.map(({ id }) => id), [wanted]);
  const scoped = await s.events.read("acc_1", query({ sessionId: "ses_2", after: wanted }));
  assert.deepEqual(scoped.events.map(({ sessionId }) => sessionId), ["ses_2"]);
});

Deno.test("a cursor that is no event id is refused", async () => {
  using s = await stage();
  for (const after of ["", "evt_", "x", "evt_ä", "evt_zzzzzzzzzzzzzzzz", "evt_9", "evt_" + "1".repeat(65), "EVT_1"]) {
    await assert.rejects(
      s.events.read("acc_1", query({ after })),
      (error) => error instanceof Problem && error.code === "validation_failed",
    );
  }
});

Deno.test("who subscribes is woken for its own account, until it goes", async () => {
  using s = await stage();
  let woken = 0;
  const off = s.events.subscribe("acc_1", () => woken++);
  s.events.subscribe("acc_1", () => woken++);
  s.events.committed("acc_1");
  s.events.committed("acc_2");
  assert.equal(woken, 2);
  off();
  s.events.committed("acc_1");
  assert.equal(woken, 3);
});

Deno.test("a reader is told of events that are removed while it asks", async () => {
  using s = await stage();
  const seen = await s.log(qr(1));
  await s.log(qr(2));
  const kv = { ...s.kv };
  const events = testEvents(kv, s.runtime);
  kv.list = async function* (range, options) {
    kv.list = s.kv.list;
    await sweepEvents(s.kv, s.runtime, { keepMs: -1 });
    yield* s.kv.list(range, options);
  };
  const { events: read, gap } = await s.runtime.clock.during(events.read("acc_1", query({ after: seen })));
  assert.deepEqual([read, gap], [[], true]);
});

Deno.test("events go when their days are over; a cursor from before is told of the gap", async () => {
  using s = await stage();
  const old = await s.log(qr(1));
  const kept = await s.log(qr(2));
  assert.equal(await s.swept({ keepMs: 7 * DAY_MS }), 0);
  await s.runtime.clock.advance(7 * DAY_MS);
  const young: string[] = [];
  for (let i = 0; i < 5; i++) young.push(await s.log(qr(i)));
  await s.runtime.clock.advance(1);
  const released: string[] = [];
  const removed = await s.swept({
    keepMs: 7 * DAY_MS,
    release: (_, events) => Promise.resolve(void released.push(...events.map(({ id }) => id))),
  });
  assert.equal(removed, 2);
  assert.deepEqual(released, [old, kept]);
  const { events, gap } = await s.events.read("acc_1", query({ after: old }));
  assert.deepEqual(events.map(({ id }) => id), young);
  assert.equal(gap, true);
  assert.equal((await s.events.read("acc_1", query({ after: kept }))).gap, false);
  assert.equal((await s.events.read("acc_1", query())).gap, false);
});

Deno.test("long events go before their time where an account's room is full, the oldest first, and nobody else's", async () => {
  using s = await stage();
  const bytesOf = async (accountId: string) => Number((await s.kv.get(eventKeys.eventBytes(accountId))).value);
  const others = await s.log(qr(1, { accountId: "acc_2" }));
  const ids: string[] = [];
  for (let i = 0; i < 30; i++) {
    ids.push(await s.log({ ...qr(1), data: { qr: String(i % 10).repeat(100_000) } } as NewEvent));
  }
  assert.ok(await bytesOf("acc_1") > 30 * 100_000);
  const released: string[] = [];
  const removed = await s.sweptOver({
    keepBytes: 1_000_000,
    release: (_, events) => Promise.resolve(void released.push(...events.map(({ id }) => id))),
  });
  assert.ok(removed >= 20 && removed < 30);
  assert.deepEqual(released, ids.slice(0, removed));
  assert.deepEqual(s.forgotten, released);
  const kept = await bytesOf("acc_1");
  assert.ok(kept <= 1_000_000 && kept > 700_000, String(kept));
  const { events, gap } = await s.events.read("acc_1", query({ after: ids[0]! }));
  assert.deepEqual([events.map(({ id }) => id), gap], [ids.slice(removed), true]);
  assert.deepEqual((await s.events.read("acc_2", query())).events.map(({ id }) => id), [others]);
  assert.equal(await s.sweptOver({ keepBytes: 1_000_000 }), 0);
  await s.runtime.clock.advance(1);
  await s.swept({ keepMs: 0 });
  assert.deepEqual([await bytesOf("acc_1"), await bytesOf("acc_2")], [0, 0]);
});

Deno.test("events of older versions, whose bytes nobody counted, take none when they go", async () => {
  using s = await stage();
  const id = await s.log(qr(1));
  const { value } = await s.kv.get(eventKeys.event("acc_1", id.slice("evt_".length)));
  const { bytes, ...older } = value!;
  await s.kv.commit(
    new Change().set(eventKeys.event("acc_1", "0000000000000001"), { ...older, id: "evt_0000000000000001" }),
  );
  await s.runtime.clock.advance(1);
  assert.equal(await s.swept({ keepMs: 0 }), 2);
  assert.ok(bytes! > 0);
  assert.equal((await s.kv.get(eventKeys.eventBytes("acc_1"))).value, 0n);
});

Deno.test("accounts take turns when their events go, a batch each", async () => {
  using s = await stage();
  for (let i = 0; i < 250; i++) await s.log(qr(i));
  for (let i = 0; i < 3; i++) await s.log(qr(i, { accountId: "acc_2" }));
  await s.runtime.clock.advance(1);
  const released: [string, number][] = [];
  const removed = await s.swept({
    keepMs: 0,
    release: (accountId, { length }) => Promise.resolve(void released.push([accountId, length])),
  });
  assert.equal(removed, 253);
  assert.deepEqual(released, [["acc_1", 100], ["acc_2", 3], ["acc_1", 100], ["acc_1", 50]]);
});

Deno.test("poison in the data is made plain: deep, wide and long values, odd numbers, half characters", () => {
  let deep: unknown = "bottom";
  for (let i = 0; i < 100_000; i++) deep = { deep };
  assert.ok(JSON.stringify(plain({ deep })).length < 1_000);
  assert.ok(JSON.stringify(plain({ wide: Array.from({ length: 1_000_000 }, () => "x") })).length < 1_000_000);
  assert.ok(JSON.stringify(plain({ text: "x".repeat(1_000_000) })).length <= 250_000);
  assert.deepEqual(
    plain({
      a: -0,
      b: NaN,
      c: 5n,
      d: 2n ** 64n,
      e: "\ud800",
      f: undefined,
      g: new Uint8Array([1, 2]),
      h: new Date(0),
      i: [undefined],
    }),
    {
      a: 0,
      b: null,
      c: 5,
      d: "18446744073709551616",
      e: "\ufffd",
      g: "AQI=",
      h: "1970-01-01T00:00:00.000Z",
      i: [null],
    },
  );
});

Deno.test("an event of the largest size still fits into one commit", async () => {
  using s = await stage();
  const id = await s.log({ ...qr(1), data: { qr: "😀".repeat(1_000_000) } } as NewEvent);
  const { events } = await s.events.read("acc_1", query());
  assert.equal(events[0]?.id, id);
});

Deno.test("every event has a schema that takes what the product logs and refuses what it does not", () => {
  const samples: Record<EventName, unknown> = {
    "message.sent": {
      messageId: "msg_1",
      networkId: "3EB0",
      jobId: "job_1",
      to: "49",
      sentAt: "2026-01-15T12:00:00.000Z",
    },
    "message.status": {
      messageId: "msg_1",
      networkId: "3EB0",
      status: "read",
      participant: null,
      at: "2026-01-15T12:00:00.000Z",
    },
    "message.failed": {
      messageId: "msg_1",
      networkId: "3EB0",
      jobId: "job_1",
      to: "49",
      error: { code: "expired", message: "x" },
    },
    "message.received": {
      from: "1@lid",
      number: null,
      pushName: null,
      messageId: "3A",
      timestamp: 1,
      type: "unknown",
      text: null,
      media: { url: null, mimetype: "a/b", size: 0, filename: "x", reason: "y" },
      chat: "1@lid",
      quoted: { messageId: "3B", fromMe: true, participant: null, text: null },
      mentions: ["49@s.whatsapp.net"],
      isForwarded: true,
      viewOnce: true,
      ad: { sourceType: "ad" },
    },
    "message.echo": {
      from: "1@lid",
      number: "49",
      pushName: "A",
      messageId: "3A",
      timestamp: 1,
      type: "conversation",
      text: "x",
      chat: "1@lid",
      isForwarded: false,
      fromMe: true,
    },
    "message.edited": { messageId: "3A", chat: "1@lid", number: "49", text: "x" },
    "message.deleted": { messageId: "3A", chat: "1@lid", number: null },
    "call.received": { callId: "C1", chat: "1@lid", number: "49", video: false },
    "presence.updated": { chat: "1@lid", number: null, state: "typing" },
    "group.updated": { group: { id: "1@g.us" } },
    "group.participants": {
      group: { id: "1@g.us", name: "Team", size: 3, isAdmin: true, createdAt: "2026-01-15T12:00:00.000Z" },
      action: "add",
      participants: [{ id: "1@lid", number: null }],
    },
    "poll.vote": { messageId: null, networkId: "3A", chat: "1@g.us", number: "49", options: ["yes"] },
    "message.proposed": { messageId: "msg_1", to: "49", type: "text", text: "hola", by: "agent" },
    "choice.made": {
      messageId: "msg_1",
      networkId: "3A",
      chat: "1@g.us",
      number: null,
      id: "2",
      label: "Pick up",
      how: "tap",
    },
    "verification.passed": { id: "ver_1", number: "49", chat: "1@lid" },
    "verification.failed": { id: "ver_1", reason: "expired" },
    "session.connected": { phone: "49" },
    "session.disconnected": { status: "logged_out", reason: "x" },
    "session.qr": { qr: "data:image/png;base64,AA==" },
    "session.degraded": { reason: null },
    "session.restricted": { active: true, kind: "DEFAULT", until: null },
    "session.passkey": { stage: "required", expiresAt: "2026-01-15T12:00:00.000Z" },
    "bulk.finished": { bulkId: "blk_1", total: 3, sent: 2, failed: 1 },
    "recipient.opted_out": { number: "34600111222", word: "STOP" },
    "webhook.failing": {
      webhookId: "whk_1",
      url: "https://example.com/",
      active: true,
      failedInARow: 3,
      lastError: "x",
      since: "2026-01-15T12:00:00.000Z",
    },
    "webhook.disabled": { webhookId: "whk_1", since: "2026-01-15T12:00:00.000Z", reason: "x" },
    "webhook.test": { webhookId: "whk_1", at: "2026-01-15T12:00:00.000Z" },
  };
  for (const name of EVENT_NAMES) {
    const envelope = { event: name, sessionId: "ses_1", sessionName: "x", data: samples[name] };
    assert.ok(envelopeSchema(name).safeParse(envelope).success, name);
    assert.ok(!envelopeSchema(name).safeParse({ ...envelope, data: {} }).success, name);
  }
});

Deno.test("a page of long events is cut by its bytes, and goes on where it was cut", async () => {
  using s = await stage();
  const ids = [];
  for (let i = 0; i < 40; i++) ids.push(await s.log({ ...qr(i), data: { qr: "\u0007".repeat(249_000) } } as NewEvent));
  const seen: string[] = [];
  let pages = 0;
  for (let after: string | null = null;; pages++) {
    const page = await s.events.read("acc_1", query({ after, limit: 1000 }));
    if (page.next === null) break;
    assert.ok(JSON.stringify(page.events).length < 32 * 1024 ** 2);
    seen.push(...page.events.map(({ id }) => id));
    after = page.next;
  }
  assert.deepEqual(seen, ids);
});

Deno.test("a text of control characters counts as what it becomes in JSON", () => {
  assert.ok(JSON.stringify(plain({ text: "\u0007".repeat(249_000) })).length <= 250_010);
});

Deno.test("a text that is too long is cut, and pushes out nothing that stands behind it", () => {
  const media = { url: "https://x/media/1", mimetype: "image/png", size: 1, filename: "a.png" };
  const rest = { media, chat: "1-2@g.us", participant: "3@lid", isForwarded: false };
  const { text, ...kept } = plain({ from: "1-2@g.us", text: "\u0007".repeat(50_000), ...rest });
  assert.deepEqual(kept, { from: "1-2@g.us", ...rest });
  assert.ok(text.length > 40_000 && text.length < 50_000, String(text.length));
});

Deno.test("an event that is too long keeps the names of the members it keeps", () => {
  const { details } = plain({ details: { ["a".repeat(249_980)]: 1, text: "b".repeat(300), caption: "c" } });
  assert.deepEqual(Object.keys(details).filter((name) => !["text", "caption", "a".repeat(249_980)].includes(name)), []);
  const cut = plain({ other: "x".repeat(249_980), text: "aaa" }) as Record<string, string>;
  assert.deepEqual(Object.keys(cut).filter((name) => name !== "other" && name !== "text"), []);
});

Deno.test("reads at the same time are shared, for as many accounts as are remembered", async () => {
  const kv = new MemoryKv();
  const { following } = testEvents(kv, testRuntime());
  let lists = 0;
  const list = kv.list.bind(kv);
  kv.list = (range, options) => {
    if (range.prefix.join() === eventKeys.events("acc_0").join()) lists++;
    return list(range, options);
  };
  const readWith = async (others: number) => {
    lists = 0;
    const accounts = ["acc_0", ...Array.from({ length: others }, (_, i) => `acc_${i + 1}`), "acc_0"];
    await Promise.all(accounts.map((accountId) => following(accountId, null)));
    return lists;
  };
  assert.equal(await readWith(100), 1);
  assert.equal(await readWith(10_000), 2);
});

Deno.test("a cursor is any id that an event can have had, after the clock was set back or an old backup restored too", async () => {
  using s = await stage();
  const last = await s.log(qr(1));
  const later = `evt_${BigInt(last.slice(4)) + 10_000_000_000n}`;
  const now = s.runtime.clock.now();
  const logAt = (at: number) => testEvents(s.kv, { ...s.runtime, clock: new ManualClock(at) });
  const refused = { code: "validation_failed" };
  await logAt(now - 3_600_000).checkCursor("acc_1", last);
  await assert.rejects(logAt(now - 3_600_000).checkCursor("acc_1", later), refused);
  await assert.rejects(logAt(now).checkCursor("acc_1", later), refused);
  await assert.rejects(logAt(now - 3_600_000).checkCursor("acc_2", last), refused);
  await logAt(now + 3_600_000).checkCursor("acc_1", later);
});
