import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { Buffer } from "node:buffer";
import type { LoggedEvent, NewEvent } from "../../../src/event/event.ts";
import { eraseEvents } from "../../../src/event/sweep.ts";
import { StoreError } from "../../../src/store/kv.ts";
import { makeLogCursor } from "../../../src/webhook/log_cursor.ts";
import type { Delivery } from "../../../src/webhook/webhook.ts";
import { type Answer, answering, Receiver } from "../../support/receiver.ts";
import { ACCOUNT, ALL_EVENTS, SESSION, textEvent, webhookStage, WebhookWorld } from "../../support/webhook_world.ts";
import { settle } from "../../support/runtime.ts";
import { until } from "../../support/until.ts";
import { isNewlyFailing } from "../../../src/webhook/failing.ts";
import { webhookKeys } from "../../../src/webhook/rows.ts";
import { existingWebhook } from "../../../src/webhook/webhooks.ts";
import { releaseEvents } from "../../../src/webhook/sweep.ts";

const tls = (name: string) => Deno.readTextFileSync(new URL(`../../support/tls/${name}.pem`, import.meta.url));
const identity = (host: string) => ({ cert: tls(`${host}.cert`), key: tls(`${host}.key`) });

const ended = (count: number) => (deliveries: Delivery[]) =>
  deliveries.length === count && deliveries.every(({ status }) => status !== "pending");

interface Row {
  name: string;
  answer: Answer;
  /** Requests that the receiver counts in the end. */
  requests: number;
  status: "delivered" | "failed";
  /** What the last attempt says. */
  last: { status: number | null; error: RegExp | null };
}

const hang: Answer = () => {};
const head: Answer = (response) => {
  response.writeHead(200);
  response.write("a");
};
const endless: Answer = (response) => {
  response.writeHead(200);
  const more = () => {
    while (response.write(Buffer.alloc(4_096))) if (response.destroyed) return;
    response.once("drain", more);
  };
  more();
};
const bomb: Answer = (response) => {
  response.writeHead(200, { "content-encoding": "gzip" });
  response.end(gzipSync(Buffer.alloc(100 * 1024 * 1024)));
};

const TABLE: Row[] = [
  { name: "200", answer: answering(200), requests: 1, status: "delivered", last: { status: 200, error: null } },
  { name: "204", answer: answering(204), requests: 1, status: "delivered", last: { status: 204, error: null } },
  {
    name: "301",
    answer: answering(301, { location: "/other" }),
    requests: 4,
    status: "failed",
    last: { status: 301, error: /answered 301/ },
  },
  { name: "400", answer: answering(400), requests: 4, status: "failed", last: { status: 400, error: /answered 400/ } },
  { name: "410", answer: answering(410), requests: 1, status: "failed", last: { status: 410, error: /answered 410/ } },
  {
    name: "429",
    answer: answering(429, { "retry-after": "60" }),
    requests: 4,
    status: "failed",
    last: { status: 429, error: /answered 429/ },
  },
  { name: "500", answer: answering(500), requests: 4, status: "failed", last: { status: 500, error: /answered 500/ } },
  { name: "an endless body", answer: endless, requests: 1, status: "delivered", last: { status: 200, error: null } },
  { name: "a gzip bomb", answer: bomb, requests: 1, status: "delivered", last: { status: 200, error: null } },
];

for (const { name, answer, requests, status, last } of TABLE) {
  Deno.test(`a receiver that answers with ${name} is asked ${requests} times and the delivery is ${status}`, async () => {
    await using s = await webhookStage({ answer });
    await s.world.log(textEvent(1));
    await s.world.until(s.webhook.id, (deliveries) => deliveries.length === 1);
    const [delivery] = await s.world.exhaust(s.webhook.id);
    assert.equal(s.receiver.requests.length, requests);
    assert.equal(delivery?.status, status);
    assert.equal(delivery?.attempts.length, requests);
    assert.equal(delivery?.attempts.at(-1)?.status, last.status);
    assert.match(delivery?.attempts.at(-1)?.error ?? "", last.error ?? /^$/);
    assert.equal(new Set(s.receiver.requests.map(({ headers }) => headers["webhook-id"])).size, 1);
    assert.ok(s.receiver.requests.every(({ path }) => path === "/hook"), "a redirect was followed");
  });
}

for (const [name, answer] of [["hangs", hang], ["drips its body", head]] as const) {
  Deno.test(`a receiver that ${name} is given 10 s, four times`, async () => {
    await using s = await webhookStage({ answer });
    const { clock } = s.world.runtime;
    await s.world.log(textEvent(1));
    for (let attempt = 1; attempt <= 4; attempt++) {
      await until(() => s.receiver.requests.length === attempt, `attempt ${attempt}`);
      await clock.advance(9_999);
      assert.equal((await s.world.deliveries(s.webhook.id))[0]?.attempts.length ?? 0, attempt - 1);
      await clock.advance(1);
      const [delivery] = await s.world.until(s.webhook.id, (now) => now[0]?.attempts.length === attempt);
      assert.equal(delivery?.attempts.at(-1)?.durationMs, 10_000);
      if (delivery?.nextAttemptAt) await clock.advance(delivery.nextAttemptAt - clock.now());
    }
    const [delivery] = await s.world.until(s.webhook.id, ended(1));
    assert.equal(delivery?.status, "failed");
    assert.match(delivery?.attempts.at(-1)?.error ?? "", /within 10 s/);
    assert.equal(s.receiver.requests.length, 4);
  });
}

Deno.test("a receiver that is not there counts as failed attempts, and is served when it comes back", async () => {
  await using s = await webhookStage();
  const gone = await Receiver.start();
  await gone.close();
  await s.world.webhooks.update(ACCOUNT, s.webhook.id, { url: gone.url });
  await s.world.log(textEvent(1));
  const [refused] = await s.world.until(s.webhook.id, (now) => now[0]?.attempts.length === 1);
  assert.match(refused?.attempts[0]?.error ?? "", /refused/);
  await s.world.webhooks.update(ACCOUNT, s.webhook.id, { url: s.receiver.url });
  const [delivery] = await s.world.exhaust(s.webhook.id);
  assert.equal(delivery?.status, "delivered");
  assert.equal(s.receiver.requests.length, 1);
});

Deno.test("a sweep that read the row before a rotation does not take the new secret back", async () => {
  await using s = await webhookStage();
  await s.world.log(textEvent(1));
  await s.world.until(s.webhook.id, ended(1));
  const { value: readBySweep } = await existingWebhook(s.world.kv, ACCOUNT, s.webhook.id);
  await s.world.webhooks.rotateSecret(ACCOUNT, s.webhook.id);
  s.world.dispatcher.changed(readBySweep);
  await s.world.log(textEvent(2));
  await s.world.until(s.webhook.id, ended(2));
  assert.equal(String(s.receiver.requests[1]!.headers["webhook-signature"]).split(" ").length, 2);
});

Deno.test("a certificate of another name or of nobody known is a failed attempt; the right one delivers", async () => {
  const resolve = () => Promise.resolve(["127.0.0.1"]);
  const right = await Receiver.start(answering(200), identity("hook.test"));
  const wrong = await Receiver.start(answering(200), identity("other.test"));
  for (
    const [receiver, caCerts, status] of [[right, [tls("ca")], "delivered"], [wrong, [tls("ca")], "failed"], [
      right,
      [],
      "failed",
    ]] as const
  ) {
    const before = receiver.requests.length;
    const world = await WebhookWorld.start({ resolve, caCerts: [...caCerts] });
    const url = `https://hook.test:${receiver.port}/hook`;
    const { webhook } = await world.webhooks.create(ACCOUNT, { url, ...ALL_EVENTS });
    await world.log(textEvent(1));
    await world.until(webhook.id, (deliveries) => deliveries.length === 1);
    const [delivery] = await world.exhaust(webhook.id);
    assert.equal(delivery?.status, status);
    if (status === "failed") assert.match(delivery?.attempts[0]?.error ?? "", /TLS handshake failed/);
    assert.equal(receiver.requests.length - before, status === "delivered" ? 1 : 0);
    await world.stop();
  }
  await right.close();
  await wrong.close();
});

Deno.test("retries wait 5, 25 and 120 s, each give or take a tenth", async () => {
  await using s = await webhookStage({ answer: answering(500) });
  await s.world.log(textEvent(1));
  for (const [i, delayMs] of [5_000, 25_000, 120_000].entries()) {
    const [delivery] = await s.world.until(s.webhook.id, (now) => now[0]?.attempts.length === i + 1);
    const waitMs = delivery!.nextAttemptAt! - s.world.runtime.clock.now();
    assert.ok(Math.abs(waitMs - delayMs) <= delayMs / 10, `${waitMs} is not about ${delayMs}`);
    await s.world.runtime.clock.advance(waitMs - 1);
    assert.equal(s.receiver.requests.length, i + 1, "the retry came too early");
    await s.world.runtime.clock.advance(1);
  }
  await s.world.until(s.webhook.id, ended(1));
});

Deno.test("Retry-After is honoured over the schedule, by seconds and by date, up to an hour", async () => {
  await using s = await webhookStage();
  const { clock } = s.world.runtime;
  const date = new Date(clock.now() + 1_800_000).toUTCString();
  s.receiver.answer = (response, received, number) =>
    answering(503, { "retry-after": ["600", date, "999999"][number - 1] ?? "" })(response, received, number);
  await s.world.log(textEvent(1));
  const waits = [600_000, 1_800_000 - 600_000, 3_600_000];
  for (const [i, expected] of waits.entries()) {
    const [delivery] = await s.world.until(s.webhook.id, (now) => now[0]?.attempts.length === i + 1);
    assert.equal(delivery!.nextAttemptAt! - clock.now(), expected);
    await clock.advance(expected);
  }
  await s.world.until(s.webhook.id, ended(1));
});

Deno.test("410 switches the webhook off, says so, and its neighbours hear of it", async () => {
  await using s = await webhookStage({ answer: answering(410) });
  const other = await Receiver.start();
  await s.world.webhooks.create(ACCOUNT, { url: other.url, events: ["webhook.failing"], sessionId: null });
  await s.world.log(textEvent(1), textEvent(2));
  await until(() => other.requests.length === 1, "webhook.failing");
  const webhook = await s.world.webhooks.get(ACCOUNT, s.webhook.id);
  assert.equal(webhook.active, false);
  assert.match(webhook.switchedOff ?? "", /410.*PUT \/v1\/webhooks/);
  const [failing] = other.events;
  assert.equal(failing?.event, "webhook.failing");
  assert.equal(failing?.sessionId, SESSION.id);
  assert.equal(failing?.data.webhookId, s.webhook.id);
  assert.equal(failing?.data.active, false);
  await s.world.log(textEvent(3));
  await s.world.runtime.clock.advance(60_000);
  assert.equal(s.receiver.requests.length, 1);
  await other.close();
});

Deno.test("webhook.failing comes after three failed deliveries in a row, again after an hour, and never to itself", async () => {
  await using s = await webhookStage({ answer: answering(500) });
  const other = await Receiver.start();
  await s.world.webhooks.create(ACCOUNT, { url: other.url, events: ["webhook.failing"], sessionId: null });
  const fail = async (number: number) => {
    await s.world.log(textEvent(number));
    await s.world.until(s.webhook.id, (now) => now.length === number);
    await s.world.exhaust(s.webhook.id);
  };
  const shown = async () => (await s.world.webhooks.list(ACCOUNT))[0]!.failingSince;
  assert.equal(await shown(), null);
  await fail(1);
  const since = await shown();
  assert.ok(since !== null && since <= s.world.runtime.clock.now());
  await fail(2);
  assert.equal(await shown(), since);
  assert.equal(other.requests.length, 0);
  for (let i = 3; i <= 5; i++) await fail(i);
  await until(() => other.requests.length === 1, "webhook.failing");
  assert.equal(other.events[0]?.data.failedInARow, 3);
  await s.world.runtime.clock.advance(3_600_000);
  await fail(6);
  await until(() => other.requests.length === 2, "the second webhook.failing");
  assert.ok(!s.receiver.events.some(({ event }) => event === "webhook.failing"));
  await other.close();
});

Deno.test("an endpoint that fails for three days is switched off, and the event says how to switch it on", async () => {
  await using s = await webhookStage({ answer: answering(500) });
  const other = await Receiver.start();
  await s.world.webhooks.create(ACCOUNT, { url: other.url, events: ["webhook.disabled"], sessionId: null });
  const { clock } = s.world.runtime;
  const fail = async (number: number) => {
    await s.world.log(textEvent(number));
    await s.world.until(s.webhook.id, (now) => now.length === number);
    await s.world.exhaust(s.webhook.id);
  };
  await fail(1);
  const since = new Date(clock.now()).toISOString();
  await fail(2);
  await clock.advance(3 * 24 * 3_600_000 - 600_000);
  await fail(3);
  assert.equal((await s.world.webhooks.get(ACCOUNT, s.webhook.id)).active, true);
  await clock.advance(600_000);
  await s.world.log(textEvent(4));
  await until(() => other.requests.length === 1, "webhook.disabled");
  const { active, switchedOff } = await s.world.webhooks.get(ACCOUNT, s.webhook.id);
  assert.equal(active, false);
  assert.deepEqual(other.events[0]?.data, { webhookId: s.webhook.id, since, reason: switchedOff });
  assert.match(switchedOff!, /^Nothing was delivered since .* PUT .* switches it on/);

  // Switched on again it has three days again, and gets what waited.
  await s.world.webhooks.update(ACCOUNT, s.webhook.id, { active: true });
  await s.world.exhaust(s.webhook.id);
  await fail(5);
  assert.equal((await s.world.webhooks.get(ACCOUNT, s.webhook.id)).active, true);
  await other.close();
});

Deno.test("an endpoint that fails now and then, with days between, stays on", async () => {
  await using s = await webhookStage({ answer: answering(500) });
  for (const number of [1, 2]) {
    await s.world.log(textEvent(number));
    await s.world.until(s.webhook.id, (now) => now.length === number);
    await s.world.exhaust(s.webhook.id);
    assert.equal((await s.world.webhooks.get(ACCOUNT, s.webhook.id)).active, true);
    await s.world.runtime.clock.advance(4 * 24 * 3_600_000);
  }
});

Deno.test("an endpoint that hangs does not delay its neighbour", async () => {
  await using s = await webhookStage({ answer: hang });
  const healthy = await Receiver.start();
  const { webhook } = await s.world.webhooks.create(ACCOUNT, { url: healthy.url, ...ALL_EVENTS });
  const events = Array.from({ length: 200 }, (_, i) => textEvent(i, { chat: `49${i}@s.whatsapp.net` }));
  await s.world.log(...events);
  // The clock stands still: no attempt at the hanging one has ended when the neighbour has everything.
  await until(() => healthy.requests.length === 200, "200 deliveries");
  await s.world.until(webhook.id, ended(200));
  assert.equal((await s.world.deliveries(s.webhook.id)).length, 0);
  assert.equal(s.receiver.requests.length, 24, "places of one webhook");
  await healthy.close();
});

Deno.test("an account with endpoints that hang delays no other, nor its own endpoint that works", async () => {
  await using s = await webhookStage({ answer: hang });
  const healthy = await Receiver.start();
  const second = await s.world.webhooks.create(ACCOUNT, { url: s.receiver.url, ...ALL_EVENTS });
  const events = (from: number, accountId: string) =>
    Array.from({ length: 50 }, (_, i) => {
      return { ...textEvent(from + i, { chat: `49${i}@s.whatsapp.net` }), accountId } as NewEvent;
    });
  await s.world.log(...events(0, ACCOUNT));
  await until(() => s.receiver.requests.length === 32, "places of one account");
  assert.equal(s.world.dispatcher.waiting(), 16);

  await s.world.webhooks.create("acc_2", { url: healthy.url, ...ALL_EVENTS });
  await s.world.log(...events(0, "acc_2"));
  await until(() => healthy.requests.length === 50, "the other account's deliveries");

  // Both have failed now: whatever they are given from here on, an endpoint that works has places of its own.
  await s.world.runtime.clock.advance(10_000);
  await s.world.until(second.webhook.id, (deliveries) => deliveries.length > 0);
  await s.world.webhooks.create(ACCOUNT, { url: healthy.url, ...ALL_EVENTS });
  await s.world.log(...events(50, ACCOUNT));
  await until(() => healthy.requests.length === 100, "the account's own deliveries");
  await healthy.close();
});

Deno.test("an endpoint that refuses at once is not called as fast as it can", async () => {
  await using s = await webhookStage({ answer: answering(500) });
  const events = Array.from({ length: 100 }, (_, i) => textEvent(i, { chat: `49${i}@s.whatsapp.net` }));
  await s.world.log(...events);
  const most = (count: number) =>
    s.world.until(s.webhook.id, (deliveries) => deliveries.length === count && s.receiver.requests.length === count);
  // Those that were on their way when the first failed, and a place each of those that fail.
  await most(32);
  await s.world.runtime.clock.advance(250);
  await most(40);
});

Deno.test("within a chat first attempts go one at a time, in order", async () => {
  await using s = await webhookStage();
  let open = 0;
  let most = 0;
  s.receiver.answer = (response) => {
    most = Math.max(most, ++open);
    setImmediate(() => {
      open--;
      response.end();
    });
  };
  await s.world.log(...Array.from({ length: 100 }, (_, i) => textEvent(i)));
  await s.world.until(s.webhook.id, ended(100));
  assert.equal(most, 1);
  assert.deepEqual(s.receiver.events.map(({ data }) => data.text), Array.from({ length: 100 }, (_, i) => `text ${i}`));
});

Deno.test("a chat whose events wait, more than are read at once, holds up no other chat", async () => {
  await using s = await webhookStage({ answer: hang });
  s.receiver.answer = (response, { body }) => {
    if (JSON.parse(body).data.from === "quiet@s.whatsapp.net") response.end();
  };
  await s.world.log(...Array.from({ length: 1_000 }, (_, i) => textEvent(i, { chat: "busy@s.whatsapp.net" })));
  const [quiet] = await s.world.log(textEvent(1, { chat: "quiet@s.whatsapp.net" }));
  const [{ eventId }] = await s.world.until(s.webhook.id, ended(1)) as [Delivery];
  assert.equal(eventId, quiet);
  assert.equal(s.receiver.requests.length, 2);
});

Deno.test("of large events few are held in memory", async () => {
  await using s = await webhookStage({ answer: hang });
  const { events, kv, runtime } = s.world;
  const large = (number: number) => {
    const event = textEvent(number);
    return { ...event, data: { ...event.data, text: "x".repeat(65_536) } } as NewEvent;
  };
  await s.world.log(...Array.from({ length: 300 }, (_, i) => large(i)));
  const { value: webhook } = await existingWebhook(kv, ACCOUNT, s.webhook.id);
  let read = 0;
  const counted = {
    async following(accountId: string, order: string | null) {
      const some = await events.following(accountId, order);
      read += some.length;
      return some;
    },
  };
  const cursor = makeLogCursor({ events: counted, clock: runtime.clock }, {
    webhook: () => webhook,
    cursor: "0",
    done: new Set(),
    attempt: () => new Promise(() => {}),
    moved: () => {},
    failed: assert.fail,
    stopped: new AbortController().signal,
  });
  cursor.follow();
  await settle();
  assert.equal(read, 128);
});

Deno.test("a webhook sees what it subscribes to, of its session, after its creation", async () => {
  const world = await WebhookWorld.start();
  const receiver = await Receiver.start();
  const other = { id: "ses_2", name: "Back office" };
  await world.log(textEvent(1));
  const global = await world.webhooks.create(ACCOUNT, {
    url: receiver.url,
    events: ["message.received"],
    sessionId: null,
  });
  const scoped = await world.webhooks.create(ACCOUNT, { url: receiver.url, events: null, sessionId: SESSION.id });
  const connected = { event: "session.connected" as const, accountId: ACCOUNT, data: { phone: "49" } };
  const ids = await world.log(
    textEvent(2),
    textEvent(3, { session: other }),
    { ...connected, sessionId: SESSION.id, sessionName: SESSION.name },
    { ...textEvent(4), accountId: "acc_2" },
  );
  const seen = async (id: string) => (await world.until(id, ended(2))).map(({ eventId }) => eventId).reverse();
  assert.deepEqual(await seen(global.webhook.id), [ids[0], ids[1]]);
  assert.deepEqual(await seen(scoped.webhook.id), [ids[0], ids[2]]);
  assert.equal(receiver.requests.length, 4);
  await world.stop();
  await receiver.close();
});

Deno.test("a paused webhook holds its events and sends them in order when it goes on", async () => {
  await using s = await webhookStage();
  await s.world.webhooks.update(ACCOUNT, s.webhook.id, { active: false });
  await s.world.log(textEvent(1), textEvent(2));
  await s.world.runtime.clock.advance(60_000);
  assert.equal(s.receiver.requests.length, 0);
  await s.world.webhooks.update(ACCOUNT, s.webhook.id, { active: true });
  await s.world.until(s.webhook.id, ended(2));
  assert.deepEqual(s.receiver.events.map(({ data }) => data.text), ["text 1", "text 2"]);
});

/** A hanging endpoint takes 24 of the account's 32 places; of 24 events the second webhook has begun 8, and 16 wait. */
async function crowdedStage() {
  const s = await webhookStage({ answer: hang });
  const receiver = await Receiver.start(hang);
  const events = Array.from({ length: 24 }, (_, i) => textEvent(i, { chat: `49${i}@s.whatsapp.net` }));
  await s.world.log(...events);
  await until(() => s.receiver.requests.length === 24, "places of one webhook");
  await s.world.webhooks.update(ACCOUNT, s.webhook.id, { active: false });
  const { webhook } = await s.world.webhooks.create(ACCOUNT, { url: receiver.url, ...ALL_EVENTS });
  const ids = await s.world.log(...events);
  await until(() => receiver.requests.length === 8 && s.world.dispatcher.waiting() === 16, "attempts that wait");
  return {
    world: s.world,
    receiver,
    webhook,
    ids,
    /** Lets all attempts under way time out. */
    timeOut: () => s.world.runtime.clock.advance(10_000),
    async [Symbol.asyncDispose]() {
      await s[Symbol.asyncDispose]();
      await receiver.close();
    },
  };
}

Deno.test("attempts that wait for their turn when the webhook is paused are made when it goes on", async () => {
  await using s = await crowdedStage();
  await s.world.webhooks.update(ACCOUNT, s.webhook.id, { active: false });
  await s.timeOut();
  await until(() => s.world.dispatcher.waiting() === 0, "the turns of those that wait");
  assert.equal(s.receiver.requests.length, 8, "requests to a paused webhook");
  s.receiver.answer = answering(200);
  await s.world.webhooks.update(ACCOUNT, s.webhook.id, { active: true });
  await s.world.exhaust(s.webhook.id);
  await s.world.until(s.webhook.id, ended(24));
  assert.equal(s.receiver.requests.length, 8 + 24);
});

Deno.test("events that were erased while their attempts wait are not sent", async () => {
  await using s = await crowdedStage();
  const { kv, runtime } = s.world;
  const erased = new Set(s.ids.slice(20));
  const among = (events: readonly LoggedEvent[]) => Promise.resolve(events.filter(({ id }) => erased.has(id)));
  const { change, erased: events } = await eraseEvents(kv, ACCOUNT, { after: null, among });
  assert.equal(events.length, 4);
  await releaseEvents({ kv, runtime }, ACCOUNT, events);
  await kv.commit(change);
  s.receiver.answer = answering(200);
  await s.timeOut();
  const deliveries = await s.world.exhaust(s.webhook.id);
  await s.world.until(s.webhook.id, ended(24));
  const sent = new Set(s.receiver.requests.map(({ headers }) => String(headers["webhook-id"])));
  assert.deepEqual([...erased].filter((id) => sent.has(id)), [], "erased, and sent");
  assert.equal(sent.size, 20);
  const lost = deliveries.filter(({ eventId }) => erased.has(eventId));
  assert.deepEqual(lost.map(({ status }) => status), Array(4).fill("failed"));
});

Deno.test("while a webhook is switched off its deliveries show no next attempt", async () => {
  await using s = await webhookStage({ answer: answering(500) });
  await s.world.log(textEvent(1));
  const [waiting] = await s.world.until(s.webhook.id, ([now]) => now?.status === "pending");
  assert.ok(waiting!.nextAttemptAt! > s.world.runtime.clock.now());
  await s.world.webhooks.update(ACCOUNT, s.webhook.id, { active: false });
  const [paused] = await s.world.deliveries(s.webhook.id);
  assert.deepEqual([paused!.status, paused!.nextAttemptAt], ["pending", null]);
  const again = await s.world.deliveryLog.redeliver(ACCOUNT, s.webhook.id, waiting!.id);
  assert.deepEqual([again.status, again.nextAttemptAt], ["pending", null]);
  await s.world.webhooks.update(ACCOUNT, s.webhook.id, { active: true });
  s.receiver.answer = answering(200);
  await s.world.until(s.webhook.id, ended(1));
});

Deno.test("after a crash at any commit every event arrives, repeated only under its own id", async () => {
  let total = 0;
  for (let commits = 0; commits < 30; commits++) {
    await using s = await webhookStage({
      answer: (response, received, number) => answering(number % 7 === 0 ? 500 : 200)(response, received, number),
    });
    const ids = await s.world.log(
      ...Array.from({ length: 40 }, (_, i) => textEvent(i, { chat: `49${i % 8}@s.whatsapp.net` })),
    );
    s.world.kv.commitsLeft = commits % 10;
    await until(() => s.world.kv.commitsLeft < 0 || s.receiver.requests.length >= 40, "the crash");
    await s.world.crash();
    await s.world.boot();
    await s.world.until(s.webhook.id, (deliveries) => deliveries.length === 40);
    const deliveries = await s.world.exhaust(s.webhook.id);
    assert.deepEqual(deliveries.map(({ eventId }) => eventId).sort(), ids);
    assert.ok(deliveries.every(({ status }) => status === "delivered"));
    const received = s.receiver.requests.map(({ headers }) => String(headers["webhook-id"]));
    assert.deepEqual([...new Set(received)].sort(), ids);
    total += received.length;
  }
  assert.ok(total >= 30 * 40);
});

Deno.test("a retry that was waiting when the process died is made by the next one", async () => {
  await using s = await webhookStage({ answer: answering(500) });
  await s.world.log(textEvent(1));
  await s.world.until(s.webhook.id, (now) => now[0]?.attempts.length === 1);
  await s.world.crash();
  s.receiver.answer = answering(200);
  await s.world.runtime.clock.advance(3_600_000);
  await s.world.boot();
  const [delivery] = await s.world.until(s.webhook.id, ended(1));
  assert.equal(delivery?.status, "delivered");
  assert.equal(delivery?.attempts.length, 2);
});

Deno.test("a store in trouble delays what is written down, and loses nothing", async () => {
  await using s = await webhookStage();
  const { StoreError } = await import("../../../src/store/kv.ts");
  s.receiver.answer = (response, received, number) => {
    if (number === 1) s.world.kv.trouble = new StoreError("locked", "another process holds the file");
    answering(200)(response, received, number);
  };
  await s.world.log(textEvent(1));
  await until(
    () => s.world.runtime.lines.some(({ msg }) => /could not be written down/.test(String(msg))),
    "the log line",
  );
  s.world.kv.trouble = null;
  await s.world.runtime.clock.advance(1_000);
  const [delivery] = await s.world.until(s.webhook.id, ended(1));
  assert.equal(delivery?.attempts.length, 1);
  assert.equal(s.receiver.requests.length, 1);
});

Deno.test("a webhook that was written although the store could not say so begins within half a minute", async () => {
  await using s = await webhookStage();
  const { world, receiver } = s;
  const commit = world.kv.commit.bind(world.kv);
  world.kv.commit = async (change) => {
    await commit(change);
    throw new StoreError("unavailable", "the answer of the store was lost");
  };
  await assert.rejects(world.webhooks.create(ACCOUNT, { url: receiver.url, ...ALL_EVENTS }), StoreError);
  world.kv.commit = commit;
  const lost = (await world.webhooks.list(ACCOUNT)).find(({ id }) => id !== s.webhook.id)!;
  await world.log(textEvent(1));
  await world.until(s.webhook.id, ended(1));
  assert.deepEqual(await world.deliveries(lost.id), []);
  await world.runtime.clock.advance(30_000);
  await world.until(lost.id, ended(1));
  assert.equal((await world.deliveries(s.webhook.id)).length, 1);
});

Deno.test("an attempt that was written although the store could not say so is followed by one retry", async () => {
  await using s = await webhookStage();
  const { world } = s;
  s.receiver.answer = (response, received, number) => {
    const commit = world.kv.commit.bind(world.kv);
    world.kv.commit = async (change) => {
      await commit(change);
      world.kv.commit = commit;
      throw new StoreError("unavailable", "the answer of the store was lost");
    };
    answering(500)(response, received, number);
  };
  await world.log(textEvent(1));
  const trouble = () => world.runtime.lines.some(({ msg }) => /could not be written down/.test(String(msg)));
  await until(trouble, "the log line");
  await world.runtime.clock.advance(1_000);
  const due = await Array.fromAsync(world.kv.list({ prefix: webhookKeys.dueAttempts(s.webhook.id) }));
  assert.equal(due.length, 1);
  s.receiver.answer = answering(200);
  await world.exhaust(s.webhook.id);
  await world.runtime.clock.advance(3_600_000);
  assert.equal(s.receiver.requests.length, 2);
});

Deno.test("a webhook that fails is reported again after an hour, and after the clock was set back by more", () => {
  const now = 1_768_478_400_000;
  const reported = (agoMs: number) =>
    isNewlyFailing({ cursor: "", origin: "", failedInARow: 3, failingSince: now, announcedAt: now - agoMs }, now);
  const HOUR_MS = 3_600_000;
  assert.deepEqual([HOUR_MS - 1, HOUR_MS, -HOUR_MS + 1, -24 * HOUR_MS].map(reported), [false, true, false, true]);
});
