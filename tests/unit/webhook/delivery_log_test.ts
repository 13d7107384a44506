/** Long delivery logs against the limits of the real engine. */
import assert from "node:assert/strict";
import type { LoggedEvent } from "../../../src/event/event.ts";
import { orderOf } from "../../../src/event/event_log.ts";
import { openDenoKv } from "../../../src/store/deno_kv/deno_kv.ts";
import { webhookKeys } from "../../../src/webhook/rows.ts";
import { Change, type Kv } from "../../../src/store/kv.ts";
import { makeDeliveryLog } from "../../../src/webhook/delivery_log.ts";
import { releaseEvents } from "../../../src/webhook/sweep.ts";
import { deliveryId, type WebhookRow } from "../../../src/webhook/webhook.ts";
import { testRuntime } from "../../support/runtime.ts";
import { ACCOUNT, textEvent } from "../../support/webhook_world.ts";
import { tempFolder } from "../../support/temp_folder.ts";
import { testEvents } from "../../support/bell.ts";

const EVENTS = 250;
const WEBHOOK: WebhookRow = {
  id: "whk_0000000000000000000000000",
  accountId: ACCOUNT,
  url: "https://example.com/",
  events: ["message.received"],
  sessionId: null,
  active: true,
  switchedOff: null,
  previousSecretUntil: null,
  createdAt: 0,
  updatedAt: 0,
  secret: new Uint8Array(1),
  previousSecret: null,
};

/** A webhook whose every delivery was tried as often as is kept, and failed with a long error each time. */
async function withTriedLog(play: (kv: Kv, events: LoggedEvent[]) => Promise<void>): Promise<void> {
  await using temp = await tempFolder();
  const runtime = testRuntime();
  const kv = await openDenoKv(`${temp.path}/kv.sqlite3`, { runtime });
  const log = testEvents(kv, runtime);
  for (let i = 0; i < EVENTS; i++) {
    const change = new Change();
    log.append(change, textEvent(i));
    await kv.commit(change);
  }
  const { events } = await log.read(ACCOUNT, { after: null, types: null, sessionId: null, limit: 1_000 });
  const orders = events.map(({ id }) => id.slice("evt_".length));
  const attempt = { at: 0, status: null, durationMs: 9.5, error: `the TLS handshake failed: ${"x".repeat(200)}` };
  await kv.commit(
    new Change().set(webhookKeys.webhook(ACCOUNT, WEBHOOK.id), WEBHOOK).set(webhookKeys.webhookProgress(WEBHOOK.id), {
      cursor: orders.at(-1)!,
      origin: "",
      failedInARow: 0,
      failingSince: null,
      announcedAt: null,
    }),
  );
  for (const [i, { id: eventId, event }] of events.entries()) {
    await kv.commit(
      new Change().set(webhookKeys.delivery(WEBHOOK.id, orders[i]!), {
        id: deliveryId(WEBHOOK.id, orders[i]!),
        eventId,
        event,
        status: "pending",
        attempts: Array.from({ length: 20 }, () => ({ ...attempt })),
        createdAt: 0,
        nextAttemptAt: 1,
      }),
    );
  }
  try {
    await play(kv, events);
  } finally {
    kv.close();
  }
}

Deno.test("a long log of deliveries that were tried often is delivered again as a whole", () =>
  withTriedLog(async (kv) => {
    const log = makeDeliveryLog({ kv, clock: testRuntime().clock, bell: { ring() {} } });
    assert.deepEqual(await log.redeliverSince(ACCOUNT, WEBHOOK.id, 0), { scheduled: EVENTS });
    const due = await Array.fromAsync(kv.list({ prefix: webhookKeys.dueAttempts(WEBHOOK.id) }));
    assert.equal(due.length, EVENTS);
  }));

Deno.test("events that go leave their deliveries as failed, however often they were tried", () =>
  withTriedLog(async (kv, events) => {
    await releaseEvents({ kv, runtime: testRuntime() }, ACCOUNT, events);
    const deliveries = await Array.fromAsync(kv.list({ prefix: webhookKeys.deliveries(WEBHOOK.id) }));
    assert.deepEqual([...new Set(deliveries.map(({ value }) => value.status))], ["failed"]);
  }));

Deno.test("a delivery that succeeds while its event goes is not marked as failed", () =>
  withTriedLog(async (kv, events) => {
    const key = webhookKeys.delivery(WEBHOOK.id, orderOf(events[0]!.id));
    let isRead = false;
    const racing: Kv = {
      ...kv,
      async getMany(keys) {
        const slots = await kv.getMany(keys);
        const { value } = await kv.get(key);
        if (!isRead) await kv.commit(new Change().set(key, { ...value!, status: "delivered", nextAttemptAt: null }));
        isRead = true;
        return slots;
      },
    };
    await releaseEvents({ kv: racing, runtime: testRuntime() }, ACCOUNT, events);
    const deliveries = await Array.fromAsync(kv.list({ prefix: webhookKeys.deliveries(WEBHOOK.id) }));
    assert.ok(!deliveries.some(({ value }) => value.eventId === events[0]!.id), "removed together with its event");
    assert.equal(deliveries.length, EVENTS - 1);
  }));
