/** An application that is down for 20 s: it is told everything once it is back, and each once. */
import assert from "node:assert/strict";
import type { NewEvent } from "../../../src/event/event.ts";
import { answerAsApplication, TOKEN } from "../../support/cloud_application.ts";
import { Receiver } from "../../support/receiver.ts";
import { until } from "../../support/until.ts";
import { ACCOUNT, ALL_EVENTS, SESSION, textEvent, WebhookWorld } from "../../support/webhook_world.ts";

const MESSAGES = 10;
const DOWN_MS = 20_000;

function statusEvents(i: number): NewEvent[] {
  const of = { accountId: ACCOUNT, sessionId: SESSION.id, sessionName: SESSION.name };
  const ids = { messageId: `msg_${i}`, networkId: `3EB0${i}` };
  const at = "2026-01-15T12:00:00.000Z";
  return [
    { ...of, event: "message.sent", data: { ...ids, jobId: "job", to: "4915100", sentAt: at } },
    { ...of, event: "message.status", data: { ...ids, status: "delivered", participant: null, at } },
    { ...of, event: "message.status", data: { ...ids, status: "read", participant: null, at } },
  ];
}

Deno.test("an application that is down for 20 s is told everything once it is back", async () => {
  const world = await WebhookWorld.start();
  const { clock } = world.runtime;
  let upAt = 0;
  const taken: string[] = [];
  const receiver = await Receiver.start((response, received) => {
    if (received.body === "") return answerAsApplication(response, received);
    const isUp = clock.now() >= upAt;
    if (isUp) taken.push(received.body);
    response.writeHead(isUp ? 200 : 503).end();
  });
  const asked = { ...ALL_EVENTS, url: receiver.url, format: "cloud", verifyToken: TOKEN } as const;
  const { webhook } = await world.webhooks.create(ACCOUNT, asked);
  upAt = clock.now() + DOWN_MS;
  for (let i = 0; i < MESSAGES; i++) await world.log(textEvent(i), ...statusEvents(i));
  await until(async () => {
    await clock.advance(500);
    return taken.length >= 4 * MESSAGES || null;
  }, "everything");
  const deliveries = await world.until(webhook.id, (all) => all.every(({ status }) => status === "delivered"));
  assert.equal(deliveries.length, 4 * MESSAGES);
  assert.ok(deliveries.some(({ attempts }) => attempts[0]!.status === 503), "nothing was refused");
  const values = taken.map((body) => JSON.parse(body).entry[0].changes[0].value);
  assert.equal(values.length, 4 * MESSAGES);
  const messages = values.flatMap(({ messages = [] }) => messages);
  assert.deepEqual(
    messages.map(({ id }: { id: string }) => id).sort(),
    Array.from({ length: MESSAGES }, (_, i) => `3EB0${i}`).sort(),
  );
  const statuses = values.flatMap(({ statuses = [] }) => statuses);
  assert.equal(new Set(statuses.map(({ id, status }: Record<string, string>) => `${id} ${status}`)).size, 3 * MESSAGES);
  await world.stop();
  await receiver.close();
});
