import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { Problem } from "../../../src/errors.ts";
import { type LoggedEvent, USUAL_EVENTS } from "../../../src/event/event.ts";
import { sweepEvents } from "../../../src/event/sweep.ts";
import { webhookKeys } from "../../../src/webhook/rows.ts";
import { Change, type CommitOptions, type Kv } from "../../../src/store/kv.ts";
import { type Delivery, deliveryId, orderOfDelivery, wants } from "../../../src/webhook/webhook.ts";
import { releaseEvents, sweepDeliveries } from "../../../src/webhook/sweep.ts";
import { answering } from "../../support/receiver.ts";
import { ACCOUNT, ALL_EVENTS, SESSION, textEvent, webhookStage } from "../../support/webhook_world.ts";
import { ManualClock } from "../../support/runtime.ts";
import { until } from "../../support/until.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The world, and what the tests ask of it most. */
async function stage() {
  const resolve = (host: string) => Promise.resolve([host === "private.test" ? "10.0.0.1" : "8.8.8.8"]);
  const staged = await webhookStage({ resolve });
  return {
    ...staged,
    webhooks: staged.world.webhooks,
    log: staged.world.deliveryLog,
    clock: staged.world.runtime.clock,
  };
}

const problem = (code: Problem["code"], path?: string) => (error: unknown) =>
  error instanceof Problem && error.code === code && (path === undefined || error.extras.errors?.[0]?.path === path);

Deno.test("a new webhook subscribes to all events when none are named, and shows its secret once", async () => {
  await using s = await stage();
  assert.deepEqual(s.webhook.events, USUAL_EVENTS);
  assert.match(s.secret, /^whsec_/);
  const [listed] = await s.webhooks.list(ACCOUNT);
  assert.deepEqual(listed, s.webhook);
  assert.ok(!JSON.stringify([listed, s.webhook]).includes('secret":"'), "a secret is shown");
  assert.ok(
    ![...s.world.disk.rows.values()].some(({ value }) =>
      JSON.stringify(value, (_, part) => typeof part === "bigint" ? `${part}` : part).includes(s.secret)
    ),
    "the secret is at rest as it is",
  );
});

Deno.test("a change counts as later than the one before it, although this process's clock is behind", async () => {
  await using s = await stage();
  const paused = await s.webhooks.update(ACCOUNT, s.webhook.id, { active: false });
  s.clock.now = () => paused.updatedAt - 5_000;
  // The worker, in another process, follows whatever is later than what it knows.
  const resumed = await s.webhooks.update(ACCOUNT, s.webhook.id, { active: true });
  assert.ok(resumed.updatedAt > paused.updatedAt, `${resumed.updatedAt}`);
  s.clock.now = ManualClock.prototype.now;
});

Deno.test("webhooks are listed oldest first, and another account sees none of them", async () => {
  await using s = await stage();
  await s.clock.advance(1);
  const second = await s.webhooks.create(ACCOUNT, {
    url: "https://example.com/",
    events: ["message.sent", "message.sent"],
    sessionId: SESSION.id,
  });
  assert.deepEqual(second.webhook.events, ["message.sent"]);
  assert.deepEqual((await s.webhooks.list(ACCOUNT)).map(({ id }) => id), [s.webhook.id, second.webhook.id]);
  assert.deepEqual(await s.webhooks.list("acc_2"), []);
  for (
    const call of [
      () => s.webhooks.get("acc_2", s.webhook.id),
      () => s.webhooks.update("acc_2", s.webhook.id, { active: false }),
      () => s.webhooks.remove("acc_2", s.webhook.id),
      () => s.webhooks.rotateSecret("acc_2", s.webhook.id),
      () => s.webhooks.test("acc_2", s.webhook.id),
      () => s.log.page("acc_2", s.webhook.id, { status: null, before: null, limit: 10 }),
      () => s.log.redeliver("acc_2", s.webhook.id, "dlv_1"),
      () => s.log.redeliverSince("acc_2", s.webhook.id, 0),
    ]
  ) await assert.rejects(call, problem("not_found"));
});

Deno.test("a bad target is refused at creation and at update, and nothing changes", async () => {
  await using s = await stage();
  const commits = s.world.disk.commits;
  for (
    const url of [
      "http://example.com/",
      "https://private.test/",
      "https://10.0.0.1/",
      "https://[::1]/",
      "https://a:b@example.com/",
      "ftp://example.com/",
      "nonsense",
      "https://example.com:25/",
    ]
  ) {
    await assert.rejects(s.webhooks.create(ACCOUNT, { url, ...ALL_EVENTS }), problem("validation_failed", "url"), url);
    await assert.rejects(s.webhooks.update(ACCOUNT, s.webhook.id, { url }), problem("validation_failed", "url"), url);
  }
  await assert.rejects(
    s.webhooks.create(ACCOUNT, { url: "https://example.com/", events: null, sessionId: "ses_9" }),
    problem("not_found"),
  );
  await assert.rejects(
    s.webhooks.create(ACCOUNT, { url: "https://example.com/", events: [], sessionId: null }),
    problem("validation_failed", "events"),
  );
  assert.equal(s.world.disk.commits, commits);
});

Deno.test("one webhook more than the plan allows is refused", async () => {
  await using s = await stage();
  const create = () => s.webhooks.create(ACCOUNT, { url: "https://example.com/", most: 3, ...ALL_EVENTS });
  for (let i = 1; i < 3; i++) await create();
  await assert.rejects(create(), problem("validation_failed"));
});

Deno.test("of twenty creations at once, an account with five to go gets five", async () => {
  await using s = await stage();
  const create = () => s.webhooks.create(ACCOUNT, { url: "https://example.com/", most: 10, ...ALL_EVENTS });
  for (let i = 1; i < 5; i++) await create();
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, create));
  assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 5);
  for (const outcome of outcomes) {
    if (outcome.status === "rejected") assert.ok(problem("validation_failed")(outcome.reason), String(outcome.reason));
  }
  const webhooks = await s.webhooks.list(ACCOUNT);
  assert.equal(webhooks.length, 10);
  // Removing makes room again.
  await s.webhooks.remove(ACCOUNT, webhooks.at(-1)!.id);
  await create();
  await assert.rejects(create(), problem("validation_failed"));
});

Deno.test("a removed webhook leaves nothing behind and gets nothing more", async () => {
  await using s = await stage();
  s.receiver.answer = answering(500);
  await s.world.log(textEvent(1));
  await s.world.until(s.webhook.id, (deliveries) => deliveries.length === 1);
  assert.equal((await s.webhooks.remove(ACCOUNT, s.webhook.id)).id, s.webhook.id);
  await s.world.log(textEvent(2));
  await s.clock.advance(HOUR_MS);
  assert.equal(s.receiver.requests.length, 1);
  assert.deepEqual([...s.world.disk.rows.keys()].filter((key) => key.includes(s.webhook.id)), []);
  await assert.rejects(s.webhooks.get(ACCOUNT, s.webhook.id), problem("not_found"));
});

Deno.test("after a rotation both secrets sign for a day, then the new one alone", async () => {
  await using s = await stage();
  const { secret, webhook } = await s.webhooks.rotateSecret(ACCOUNT, s.webhook.id);
  assert.equal(webhook.previousSecretUntil, s.clock.now() + DAY_MS);
  const hex = (body: string, key: string) => createHmac("sha256", key).update(body).digest("hex");
  await s.world.log(textEvent(1));
  await until(() => s.receiver.requests.length === 1, "the first delivery");
  const [during] = s.receiver.requests;
  assert.equal(during!.headers["x-webhook-signature"], hex(during!.body, secret));
  assert.equal(during!.headers["x-webhook-signature-previous"], hex(during!.body, s.secret));
  assert.equal(String(during!.headers["webhook-signature"]).split(" ").length, 2);
  await s.clock.advance(DAY_MS);
  await s.world.log(textEvent(2));
  await until(() => s.receiver.requests.length === 2, "the second delivery");
  assert.equal(s.receiver.requests[1]!.headers["x-webhook-signature-previous"], undefined);
  assert.equal((await s.webhooks.get(ACCOUNT, s.webhook.id)).previousSecretUntil, null);
});

Deno.test("the test event goes to its webhook alone, whatever it subscribes to", async () => {
  await using s = await stage();
  const narrow = await s.webhooks.create(ACCOUNT, {
    url: s.receiver.url,
    events: ["session.qr"],
    sessionId: SESSION.id,
  });
  const { eventId } = await s.webhooks.test(ACCOUNT, narrow.webhook.id);
  const [delivery] = await s.world.until(narrow.webhook.id, (now) => now[0]?.status === "delivered");
  assert.equal(delivery?.eventId, eventId);
  assert.equal(delivery?.event, "webhook.test");
  assert.equal(s.receiver.requests.length, 1);
  assert.equal(s.receiver.requests[0]?.headers["webhook-id"], eventId);
  assert.equal(s.receiver.events[0]?.sessionName, SESSION.name);
});

Deno.test("one delivery is made again under the same id, and its log grows", async () => {
  await using s = await stage();
  s.receiver.answer = answering(500);
  await s.world.log(textEvent(1));
  await s.world.until(s.webhook.id, (now) => now.length === 1);
  const [failed] = await s.world.exhaust(s.webhook.id);
  s.receiver.answer = answering(200);
  const pending = await s.log.redeliver(ACCOUNT, s.webhook.id, failed!.id);
  assert.equal(pending.status, "pending");
  const [delivered] = await s.world.until(s.webhook.id, (now) => now[0]?.status === "delivered");
  assert.equal(delivered?.attempts.length, 5);
  assert.equal(delivered?.id, failed?.id);
  assert.equal(new Set(s.receiver.requests.map(({ headers, body }) => headers["webhook-id"] + body)).size, 1);
  for (const id of ["dlv_9999999999999999", "nonsense"]) {
    await assert.rejects(s.log.redeliver(ACCOUNT, s.webhook.id, id), problem("not_found"));
  }
});

Deno.test("redelivering a retry that waits replaces it instead of doubling it", async () => {
  await using s = await stage();
  s.receiver.answer = answering(500);
  await s.world.log(textEvent(1));
  const [waiting] = await s.world.until(s.webhook.id, (now) => now[0]?.attempts.length === 1);
  s.receiver.answer = answering(200);
  await s.log.redeliver(ACCOUNT, s.webhook.id, waiting!.id);
  await s.world.until(s.webhook.id, (now) => now[0]?.status === "delivered");
  await s.clock.advance(HOUR_MS);
  assert.equal(s.receiver.requests.length, 2);
});

Deno.test("what is delivered again while it is on its way has one series of attempts, however that attempt ends", async () => {
  await using s = await stage();
  s.receiver.answer = answering(500);
  await s.world.log(textEvent(1));
  const [waiting] = await s.world.until(s.webhook.id, (now) => now[0]?.attempts.length === 1);
  let answer = () => {};
  s.receiver.answer = (response, received, number) => answer = () => answering(500)(response, received, number);
  await s.clock.advance(waiting!.nextAttemptAt! - s.clock.now());
  await until(() => s.receiver.requests.length === 2, "the second attempt");
  await s.clock.advance(10);
  await s.log.redeliver(ACCOUNT, s.webhook.id, waiting!.id);
  s.receiver.answer = answering(200);
  answer();
  await s.world.until(s.webhook.id, (now) => now[0]!.attempts.length >= 2);
  await s.clock.advance(1_000);
  await s.world.until(s.webhook.id, (now) => now[0]?.status === "delivered");
  await s.clock.advance(HOUR_MS);
  const [delivery] = await s.world.deliveries(s.webhook.id);
  assert.equal(delivery?.attempts.length, 3);
  assert.equal(s.receiver.requests.length, 3);
});

Deno.test("an attempt that ends while all since a time are made due is kept, and plans no series of its own", async () => {
  await using s = await stage();
  s.receiver.answer = answering(500);
  await s.world.log(textEvent(1));
  const [waiting] = await s.world.until(s.webhook.id, (now) => now[0]?.attempts.length === 1);
  const { kv } = s.world;
  const commit = kv.commit.bind(kv);
  kv.commit = async (change: Change, options?: CommitOptions) => {
    if (!options?.background) return await commit(change);
    kv.commit = commit;
    await s.clock.advance(waiting!.nextAttemptAt! - s.clock.now());
    await s.world.until(s.webhook.id, (now) => now[0]?.attempts.length === 2);
    s.receiver.answer = answering(200);
    return await commit(change);
  };
  assert.deepEqual(await s.log.redeliverSince(ACCOUNT, s.webhook.id, 0), { scheduled: 1 });
  await s.clock.advance(1_000);
  await s.world.until(s.webhook.id, (now) => now[0]?.status === "delivered");
  await s.clock.advance(HOUR_MS);
  const [delivery] = await s.world.deliveries(s.webhook.id);
  assert.deepEqual(delivery?.attempts.map(({ status }) => status), [500, 500, 200]);
  assert.equal(s.receiver.requests.length, 3);
});

Deno.test("all since a time are made again: not those before, not those of before the webhook, not what it has no ear for", async () => {
  await using s = await stage();
  await s.world.log(textEvent(0));
  await s.clock.advance(HOUR_MS);
  const late = await s.webhooks.create(ACCOUNT, { url: s.receiver.url, events: ["message.received"], sessionId: null });
  await s.world.log(textEvent(1));
  await s.world.until(late.webhook.id, (now) => now[0]?.status === "delivered");
  await s.clock.advance(HOUR_MS);
  const since = s.clock.now();
  const ids = await s.world.log(textEvent(2), {
    event: "session.qr",
    accountId: ACCOUNT,
    sessionId: SESSION.id,
    sessionName: "",
    data: { qr: "data:" },
  }, textEvent(3));
  await s.world.until(late.webhook.id, (now) => now.filter(({ status }) => status === "delivered").length === 3);
  assert.deepEqual(await s.log.redeliverSince(ACCOUNT, late.webhook.id, since), { scheduled: 2 });
  const again = await s.world.until(
    late.webhook.id,
    (now) => now.filter(({ attempts }) => attempts.length === 2).length === 2,
  );
  assert.deepEqual(again.filter(({ attempts }) => attempts.length === 2).map(({ eventId }) => eventId), [
    ids[2],
    ids[0],
  ]);
  assert.deepEqual(await s.log.redeliverSince(ACCOUNT, late.webhook.id, 0), { scheduled: 3 });
  await s.world.until(late.webhook.id, (now) => now.every(({ status }) => status === "delivered"));
});

Deno.test("all since a time are made again, although a process whose clock is behind has logged others after them", async () => {
  await using s = await stage();
  await s.clock.advance(HOUR_MS);
  const since = s.clock.now();
  const [late] = await s.world.log(textEvent(1));
  s.clock.now = () => since - 1_000;
  await s.world.log(textEvent(2));
  s.clock.now = ManualClock.prototype.now;
  await s.world.until(s.webhook.id, (now) => now.filter(({ status }) => status === "delivered").length === 2);
  assert.deepEqual(await s.log.redeliverSince(ACCOUNT, s.webhook.id, since), { scheduled: 1 });
  const again = await s.world.until(s.webhook.id, (now) => now.some(({ attempts }) => attempts.length === 2));
  assert.deepEqual(again.filter(({ attempts }) => attempts.length === 2).map(({ eventId }) => eventId), [late]);
});

/** A webhook that was subscribed to nothing while these came, and that hears of them again. Resolves to their ids. */
async function passedOver(s: Awaited<ReturnType<typeof stage>>): Promise<string[]> {
  await s.webhooks.update(ACCOUNT, s.webhook.id, { events: ["session.qr"] });
  const { events } = s.world;
  const { following } = events;
  let read: string | undefined;
  events.following = async (...asked) => {
    const found = await following(...asked);
    read = found.at(-1)?.id ?? read;
    return found;
  };
  const first = await s.world.log(textEvent(1), textEvent(2), textEvent(3));
  const { eventId } = await s.webhooks.test(ACCOUNT, s.webhook.id);
  await s.world.until(s.webhook.id, (now) => now[0]?.status === "delivered");
  const last = await s.world.log(textEvent(4), textEvent(5), textEvent(6));
  await until(() => read === last.at(-1), "the worker to pass over them");
  await s.webhooks.update(ACCOUNT, s.webhook.id, { events: ["message.received"] });
  return [...first, eventId, ...last];
}

Deno.test("all since a time are made again, also those that came while the webhook was not subscribed to them", async () => {
  await using s = await stage();
  const ids = await passedOver(s);
  assert.deepEqual(await s.log.redeliverSince(ACCOUNT, s.webhook.id, 0), { scheduled: 7 });
  const again = await s.world.until(
    s.webhook.id,
    (now) => now.length === 7 && now.every(({ status }) => status === "delivered"),
  );
  assert.deepEqual(again.map(({ eventId }) => eventId).reverse(), ids);
});

Deno.test("what came before a webhook was subscribed to it is not sent after a crash either", async () => {
  await using s = await stage();
  await passedOver(s);
  await s.world.crash();
  await s.world.boot();
  const [id] = await s.world.log(textEvent(7));
  const deliveries = await s.world.until(s.webhook.id, (now) => now[0]?.eventId === id && now[0]!.status !== "pending");
  assert.deepEqual(deliveries.map(({ event }) => event), ["message.received", "webhook.test"]);
});

Deno.test("the id of a delivery is its event's place and its webhook, and no other webhook's", () => {
  const [mine, other] = ["whk_01kf0m3e4v8s2q6w9x1y5z7abc", "whk_01kf0m3e4v8s2q6w9x1y5z7abd"];
  const id = deliveryId(mine!, "1768478400000042");
  assert.match(id, /^dlv_[0-9a-z]{26}$/);
  assert.equal(orderOfDelivery(mine!, id), "1768478400000042");
  for (const wrong of [deliveryId(other!, "1768478400000042"), "dlv_", "", id.toUpperCase(), `x${id}`]) {
    assert.equal(orderOfDelivery(mine!, wrong), null);
  }
});

Deno.test("the delivery log is read newest first, page by page, by status", async () => {
  await using s = await stage();
  s.receiver.answer = (response, received, number) =>
    answering(number % 2 === 0 ? 200 : 500)(response, received, number);
  const ids = await s.world.log(...Array.from({ length: 5 }, (_, i) => textEvent(i)));
  await s.world.until(s.webhook.id, (now) => now.length === 5);
  const seen: string[] = [];
  let before: string | null = null;
  do {
    const page = await s.log.page(ACCOUNT, s.webhook.id, { status: null, before, limit: 2 });
    seen.push(...page.deliveries.map(({ eventId }) => eventId));
    before = page.next;
  } while (before !== null);
  assert.deepEqual(seen, ids.reverse());
  const waiting = await s.log.page(ACCOUNT, s.webhook.id, { status: "pending", before: null, limit: 10 });
  assert.equal(waiting.deliveries.length, 3);
  await assert.rejects(
    s.log.page(ACCOUNT, s.webhook.id, { status: null, before: "x", limit: 2 }),
    problem("validation_failed", "before"),
  );
});

/** Removes events that are older, as the product does. */
function swept({ world: { kv, runtime }, clock }: Awaited<ReturnType<typeof stage>>, keepMs: number): Promise<number> {
  const release = (accountId: string, events: readonly LoggedEvent[]) =>
    releaseEvents({ kv, runtime }, accountId, events);
  return clock.during(sweepEvents(kv, runtime, { keepMs, release }));
}

Deno.test("events that go before they were delivered end in the failed log; a paused webhook misses them", async () => {
  await using s = await stage();
  const paused = await s.webhooks.create(ACCOUNT, { url: s.receiver.url, ...ALL_EVENTS });
  await s.webhooks.update(ACCOUNT, paused.webhook.id, { active: false });
  s.receiver.answer = answering(500, { "retry-after": "3600" });
  await s.world.log(textEvent(1));
  await s.world.until(s.webhook.id, (now) => now.length === 1);
  await s.world.stop();
  await s.world.log(textEvent(2), textEvent(3));
  await s.clock.advance(8 * DAY_MS);
  assert.equal(await swept(s, 7 * DAY_MS), 3);
  await s.world.boot();
  await s.clock.advance(HOUR_MS);
  const deliveries = await s.world.deliveries(s.webhook.id);
  assert.deepEqual(deliveries.map(({ status }) => status), ["failed", "failed", "failed"]);
  assert.match(deliveries[0]?.attempts.at(-1)?.error ?? "", /no longer kept/);
  assert.deepEqual(await s.world.deliveries(paused.webhook.id), []);
  assert.equal(s.receiver.requests.length, 1);
  await assert.rejects(s.world.deliveryLog.redeliver(ACCOUNT, s.webhook.id, deliveries[0]!.id), problem("not_found"));
});

Deno.test("an event that goes while an attempt is on its way ends in the failed log too", async () => {
  await using s = await stage();
  let answer = () => {};
  s.receiver.answer = (response, received, number) => answer = () => answering(500)(response, received, number);
  await s.world.log(textEvent(1));
  await until(() => s.receiver.requests.length === 1, "the first attempt");
  assert.equal(await swept(s, -1), 1);
  answer();
  const [{ nextAttemptAt }] = await s.world.until(s.webhook.id, ([now]) => now?.status === "pending") as [Delivery];
  await s.clock.advance(nextAttemptAt! - s.clock.now());
  const [delivery] = await s.world.until(s.webhook.id, ([now]) => now?.status === "failed");
  assert.match(delivery!.attempts.at(-1)!.error!, /no longer kept/);
  assert.equal(delivery!.nextAttemptAt, null);
  assert.equal(s.receiver.requests.length, 1);
});

Deno.test("delivered ones go with their event, failed ones after thirty days", async () => {
  await using s = await stage();
  const { kv, runtime } = s.world;
  s.receiver.answer = (response, received, number) => answering(number === 1 ? 200 : 500)(response, received, number);
  await s.world.log(textEvent(1), textEvent(2));
  await s.world.until(s.webhook.id, (now) => now.length === 2);
  await s.world.exhaust(s.webhook.id);
  await s.world.stop();
  await s.clock.advance(8 * DAY_MS);
  await swept(s, 7 * DAY_MS);
  assert.deepEqual((await s.world.deliveries(s.webhook.id)).map(({ status }) => status), ["failed"]);
  await s.clock.advance(21 * DAY_MS);
  assert.equal(await sweepDeliveries({ kv, runtime }), 0);
  await s.clock.advance(2 * DAY_MS);
  assert.equal(await sweepDeliveries({ kv, runtime }), 1);
  assert.deepEqual(await s.world.deliveries(s.webhook.id), []);
});

Deno.test("a webhook that is made while the deliveries are swept keeps its place in the log", async () => {
  await using s = await stage();
  const { kv, runtime } = s.world;
  let made = s.webhook;
  const whileListing: Kv = {
    ...kv,
    close: () => {},
    async *list(range, options) {
      yield* kv.list(range, options) as AsyncIterable<never>;
      if (made === s.webhook) made = (await s.webhooks.create(ACCOUNT, { url: s.receiver.url, ...ALL_EVENTS })).webhook;
    },
  };
  await sweepDeliveries({ kv: whileListing, runtime });
  assert.notEqual(made, s.webhook);
  assert.ok(
    (await kv.get(webhookKeys.webhookProgress(made.id))).value,
    "without it the webhook would never be served again",
  );
});

Deno.test("what was written for a webhook while it was removed is swept", async () => {
  await using s = await stage();
  const { kv, runtime } = s.world;
  const late = { id: "dlv_1", status: "failed", createdAt: s.clock.now() } as Delivery;
  const change = new Change();
  for (const gone of ["whk_0", "whk_1", "whk_2"]) {
    change.set(webhookKeys.delivery(gone, "1"), late).set(webhookKeys.dueAttempt(gone, s.clock.now(), "1"), 2);
  }
  await kv.commit(change);
  await sweepDeliveries({ kv, runtime });
  assert.deepEqual(await Array.fromAsync(kv.list({ prefix: webhookKeys.allDeliveries() })), []);
  assert.deepEqual(await Array.fromAsync(kv.list({ prefix: webhookKeys.allDueAttempts() })), []);
  assert.ok((await kv.get(webhookKeys.webhookProgress(s.webhook.id))).value);
});

Deno.test("a webhook's own headers are sent with each request, kept sealed, and never shown", async () => {
  await using s = await stage();
  const [name, hidden] = ["Authorization", "Basic cGFsb21hOmh1bnRlcjI="];
  const shown = await s.webhooks.update(ACCOUNT, s.webhook.id, { headers: { [name]: hidden, "User-Agent": "shop" } });
  assert.deepEqual(shown.headerNames, ["authorization", "user-agent"]);
  const rows = [...s.world.disk.rows.values()].map(({ value }) => value);
  const plain = (_: string, part: unknown) =>
    part instanceof Uint8Array ? new TextDecoder().decode(part) : typeof part === "bigint" ? `${part}` : part;
  assert.ok(!JSON.stringify([rows, shown, await s.webhooks.list(ACCOUNT)], plain).includes(hidden));
  await s.world.log(textEvent(1));
  await s.world.until(s.webhook.id, (deliveries) => deliveries[0]?.status === "delivered");
  const [first] = s.receiver.requests;
  assert.equal(first!.headers.authorization, hidden);
  assert.equal(first!.headers["user-agent"], "shop");
  assert.match(`${first!.headers["x-webhook-signature"]}`, /^[0-9a-f]{64}$/);

  await s.webhooks.rotateSecret(ACCOUNT, s.webhook.id);
  assert.deepEqual((await s.webhooks.get(ACCOUNT, s.webhook.id)).headerNames, ["authorization", "user-agent"]);
  await s.webhooks.update(ACCOUNT, s.webhook.id, { headers: {} });
  await s.world.log(textEvent(2));
  await s.world.until(s.webhook.id, (all) => all.length === 2 && all.every(({ status }) => status === "delivered"));
  assert.equal(s.receiver.requests[1]!.headers.authorization, undefined);
});

Deno.test("a webhook gets the events of its kind of chat, and those that are about no chat", async () => {
  const [person, group] = ["4915100@s.whatsapp.net", "120363025246125486@g.us"];
  const base = textEvent(1);
  const about = (event: string, data: Record<string, unknown>) =>
    ({ ...base, id: "evt_1", createdAt: 0, event, data }) as unknown as LoggedEvent;
  const events: [LoggedEvent, "direct" | "groups" | null][] = [
    [about("message.received", { chat: person }), "direct"],
    [about("message.received", { chat: group }), "groups"],
    [about("message.received", { chat: "7@lid" }), "direct"],
    [about("message.sent", { to: "4915100" }), "direct"],
    [about("message.failed", { to: group }), "groups"],
    [about("message.sent", { to: "status@broadcast" }), null],
    [about("message.status", { participant: null }), "direct"],
    [about("message.status", { participant: person }), "groups"],
    [about("group.updated", { group: { id: group } }), "groups"],
    [about("group.participants", { group: { id: group } }), "groups"],
    [about("recipient.opted_out", { number: "4915100", word: "stop" }), "direct"],
    [about("session.connected", { phone: "4915100" }), null],
    [about("bulk.finished", { bulkId: "blk_1" }), null],
  ];
  await using s = await stage();
  for (const chats of ["direct", "groups", "all"] as const) {
    const webhook = await s.webhooks.update(ACCOUNT, s.webhook.id, { chats });
    for (const [event, kind] of events) {
      const expected = chats === "all" || kind === null || kind === chats;
      assert.equal(wants(webhook, event), expected, `${chats}: ${event.event} ${JSON.stringify(event.data)}`);
    }
  }
});
