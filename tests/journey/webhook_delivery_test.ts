/** Webhooks on the whole product: who hangs delays nobody, what failed comes again, and a restart loses nothing. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { answering, Receiver } from "../support/receiver.ts";
import { onSharedStage, onStage, type Stage } from "../support/stage.ts";
import { referenceCheck, standardCheck, subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

const onWebhooks = onSharedStage("webhooks are delivered");

/** How long the gateway waits for an answer. */
const ATTEMPT_MS = 10_000;
/** And before it tries again. */
const PAUSES_MS = [5_000, 25_000, 120_000];
/** 28 KB that are nothing but spaces. */
const SPACES = Array.from({ length: 4 }, (_, i) => [`x-${i}`, `a${" ".repeat(7_000)}b`]);

type Chat = readonly [line: string, customer: string];

async function writes({ control }: Stage, [to, customer]: Chat, text: string): Promise<string> {
  return (await control.call("POST", `/phones/${customer}/messages`, { to, text })).id;
}

async function deliveries({ api }: Stage, webhookId: string): Promise<Json[]> {
  return (await api.call("GET", `/webhooks/${webhookId}/deliveries?limit=100`)).data;
}

onWebhooks("an endpoint that hangs never delays a healthy neighbour", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA);
  await stage.linkLine(LINE);
  const hanging = await subscribe(stage, { events: ["message.received"], answer: () => {} });
  const dripping = await subscribe(stage, {
    events: ["message.received"],
    answer: (response) => void response.writeHead(200).write("."),
  });
  // Reading such an answer once took as long as its spaces are many, squared.
  const spacious = await subscribe(stage, {
    events: ["message.received"],
    answer: (response) => void response.writeHead(200, Object.fromEntries(SPACES)).end(),
  });
  const healthy = await subscribe(stage, { events: ["message.received"] });
  const ids: string[] = [];
  const begun = systemClock.now();
  for (let i = 0; i < 40; i++) ids.push(await writes(stage, [LINE, ANA], `for a healthy endpoint ${i}`));
  for (const { count } of [healthy, spacious]) {
    assert.deepEqual((await count(40)).map(({ data }) => data.messageId), ids);
  }
  // By then the others have not got beyond the first, or as many as could end in that time: one chat, one at a time.
  for (const { delivered } of [hanging, dripping]) {
    const asked = [...new Set(delivered().map(({ data }) => data.messageId))];
    const most = 1 + Math.floor((systemClock.now() - begun) / ATTEMPT_MS);
    assert.deepEqual(asked, ids.slice(0, Math.min(asked.length, most)));
    assert.ok(asked.length > 0);
  }
  for (const client of [healthy, spacious, hanging, dripping]) await client.end();
});

onWebhooks(
  "a webhook of one session hears that session alone, beside one for all",
  async (stage, [LINE, ANA, OTHER]) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    const other = await stage.linkLine(OTHER);
    const scoped = await subscribe(stage, { events: ["message.received"], sessionId: line.sessionId });
    const global = await subscribe(stage, { events: ["message.received"] });
    await stage.control.call("POST", `/phones/${ANA}/messages`, { to: other.number, text: "to the other line" });
    const mine = await writes(stage, [LINE, ANA], "to the line itself");
    const heard = (await global.count(2)).map(({ sessionId }) => sessionId).sort();
    assert.deepEqual(heard, [line.sessionId, other.sessionId].sort());
    await scoped.event("the message", ({ data }) => data.messageId === mine);
    assert.equal(scoped.delivered().length, 1);
    await scoped.end();
    await global.end();
  },
);

onWebhooks(
  "an endpoint that is gone is switched off; switched on again, it gets what waited",
  async (stage, [LINE, ANA]) => {
    await stage.addPhone(ANA);
    await stage.linkLine(LINE);
    const client = await subscribe(stage, { events: ["message.received"], answer: answering(410) });
    const watcher = await subscribe(stage, { events: ["webhook.failing"] });
    const first = await writes(stage, [LINE, ANA], "to an endpoint that is gone");
    const { data } = await watcher.event("webhook.failing", ({ event }) => event === "webhook.failing");
    assert.equal(data.webhookId, client.webhookId);
    assert.equal(data.active, false);
    const listed = (await stage.api.call("GET", "/webhooks")).data.find(({ id }: Json) => id === client.webhookId);
    assert.equal(listed.active, false);
    assert.match(listed.switchedOff, /410/);

    const waiting = [
      await writes(stage, [LINE, ANA], "while it is off, 1"),
      await writes(stage, [LINE, ANA], "while it is off, 2"),
    ];
    await until(async () => {
      const { data } = await stage.api.call("GET", "/events?types=message.received");
      return data.length === 3 ? true : null;
    }, "the events");
    assert.deepEqual(client.delivered().map(({ data }) => data.messageId), [first], "asked once, and then left alone");
    client.receiver.answer = answering(200);
    const { data: changed } = await stage.api.call("PUT", `/webhooks/${client.webhookId}`, { active: true });
    assert.deepEqual([changed.active, changed.switchedOff], [true, null]);
    const delivered = await client.count(3);
    assert.deepEqual(delivered.map(({ data }) => data.messageId), [first, ...waiting]);
    await client.end();
    await watcher.end();
  },
);

onWebhooks(
  "the log shows each attempt; one delivery or all since a time go out again, under the same id",
  async (stage, [LINE, ANA]) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    const client = await subscribe(stage, { events: ["message.received"] });
    const ids = [];
    for (const i of [1, 2, 3]) ids.push(await writes(stage, [LINE, ANA], `to be logged ${i}`));
    const delivered = await client.count(3);
    const log = await until(async () => {
      const log = await deliveries(stage, client.webhookId);
      return log.filter(({ status }) => status === "delivered").length === 3 ? log : null;
    }, "the log");
    for (const [i, delivery] of log.toReversed().entries()) {
      const { id, attempts: [attempt, ...more], createdAt, ...rest } = delivery;
      assert.match(id, /^dlv_/);
      assert.deepEqual(rest, {
        eventId: delivered[i]!.id,
        event: "message.received",
        status: "delivered",
        nextAttemptAt: null,
      });
      assert.deepEqual(more, []);
      assert.deepEqual(Object.keys(attempt).sort(), ["at", "durationMs", "error", "status"]);
      assert.deepEqual([attempt.status, attempt.error], [200, null]);
      assert.ok(attempt.durationMs >= 0 && Date.parse(attempt.at) <= Date.now() && Date.parse(createdAt) <= Date.now());
    }

    const path = `/webhooks/${client.webhookId}`;
    await stage.api.call("POST", `${path}/deliveries/${log[0].id}/redeliver`);
    await until(() => client.delivered().length === 4, "the redelivery");
    assert.deepEqual(client.delivered()[3]!.request.body, delivered[2]!.request.body);
    assert.equal(client.delivered()[3]!.id, delivered[2]!.id);

    const since = (await stage.api.call("GET", "/events?types=message.received")).data[1].createdAt;
    const { data: { scheduled } } = await stage.api.call("POST", `${path}/redeliver`, { since });
    assert.ok(scheduled >= 2, "what came at that time or later");
    await until(() => client.delivered().length === 4 + scheduled, "the redeliveries");
    assert.equal(new Set(client.delivered().map(({ id }) => id)).size, 3);

    const { data: { eventId } } = await stage.api.call("POST", `${path}/test`);
    const test = await client.event("the test", ({ id }) => id === eventId);
    assert.equal(test.event, "webhook.test");
    assert.equal(test.sessionId, line.sessionId);
    assert.equal(test.data.webhookId, client.webhookId);
    await client.end();
  },
);

onWebhooks("while a secret is rotated, requests are signed with both", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA);
  await stage.linkLine(LINE);
  const client = await subscribe(stage, { events: ["message.received"] });
  const [old] = client.secrets;
  const { data } = await stage.api.call("POST", `/webhooks/${client.webhookId}/rotate-secret`);
  client.secrets.unshift(data.secret);
  assert.notEqual(data.secret, old);
  assert.ok(Date.parse(data.previousSecretUntil) > Date.now() + 23 * 3_600_000);
  const id = await writes(stage, [LINE, ANA], "signed twice");
  const { request } = await client.event("the message", ({ data }) => data.messageId === id);
  const body = JSON.parse(request.body);
  assert.ok(referenceCheck(body, request.headers["x-webhook-signature"], data.secret));
  assert.ok(referenceCheck(body, request.headers["x-webhook-signature-previous"], old!));
  for (const secret of client.secrets) assert.ok(standardCheck(request.body, request.headers, secret));
  await client.end();
});

onStage("what fails before a kill is tried again after it, and nothing is missing", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA);
  const line = await stage.linkLine(LINE);
  const client = await subscribe(stage, { events: ["message.received"], answer: answering(503) });
  const before = [
    await writes(stage, [LINE, ANA], "before the kill 1"),
    await writes(stage, [LINE, ANA], "before the kill 2"),
  ];
  await until(async () => {
    const log = await deliveries(stage, client.webhookId);
    return log.filter(({ status }) => status === "pending").length === 2 ? true : null;
  }, "both to have failed once");
  await stage.gateway.kill();
  client.receiver.answer = answering(200);
  await stage.gateway.start();
  await stage.sessionStatus(line, "connected");
  const after = await writes(stage, [LINE, ANA], "after the kill");
  const delivered = await client.count(3);
  assert.deepEqual(delivered.map(({ data }) => data.messageId).sort(), [...before, after].sort());
  const log = await until(async () => {
    const log = await deliveries(stage, client.webhookId);
    return log.filter(({ status }) => status === "delivered").length === 3 ? log : null;
  }, "all to be delivered");
  const [last, ...retried] = log.map(({ attempts }) => attempts.map(({ status }: Json) => status).join(" "));
  assert.equal(last, "200");
  for (const statuses of retried) assert.match(statuses, /^(503 )+200$/);
  await client.end();
});

onWebhooks("a target that nobody answers at is tried again, and 301 is no success", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA);
  await stage.linkLine(LINE);
  const elsewhere = await Receiver.start();
  const moved = await subscribe(stage, {
    events: ["message.received"],
    answer: answering(301, { location: elsewhere.url }),
  });
  const closed = await subscribe(stage, { events: ["message.received"] });
  await closed.end();
  await writes(stage, [LINE, ANA], "to nobody");
  for (const [webhookId, status, error] of [[moved.webhookId, 301, /301/], [closed.webhookId, null, /./]] as const) {
    const [delivery] = await until(async () => {
      const log = await deliveries(stage, webhookId);
      return log.length > 0 ? log : null;
    }, "an attempt");
    assert.equal(delivery.status, "pending");
    assert.equal(delivery.attempts[0].status, status);
    assert.match(delivery.attempts[0].error, error);
    // A tenth more or less, from when the last was written down: between its begin and now.
    const pauseMs = PAUSES_MS[delivery.attempts.length - 1]!;
    const [next, last] = [Date.parse(delivery.nextAttemptAt), Date.parse(delivery.attempts.at(-1).at)];
    assert.ok(
      next >= last + 0.9 * pauseMs && next <= systemClock.now() + 1.1 * pauseMs,
      `the next attempt after ${next - last} ms`,
    );
  }
  assert.equal(elsewhere.requests.length, 0);
  await elsewhere.close();
  await moved.end();
});
