import assert from "node:assert/strict";
import type { EventLog } from "../../../src/event/event_log.ts";
import type { LoggedEvent } from "../../../src/event/event.ts";
import type { Change, CommitOptions, Kv } from "../../../src/store/kv.ts";
import { makeDeliveryWriter } from "../../../src/webhook/delivery_writer.ts";
import type { WebhookProgress, WebhookRow } from "../../../src/webhook/webhook.ts";
import { testRuntime } from "../../support/runtime.ts";
import { ACCOUNT, textEvent } from "../../support/webhook_world.ts";

Deno.test("a full batch of outcomes is written at once, and a smaller one joins another flush", async () => {
  const runtime = testRuntime();
  const commits: { deliveries: number; lingers: boolean }[] = [];
  const kv = {
    commit(change: Change, { lingerUntil }: CommitOptions = {}) {
      commits.push({ deliveries: change.mutations.length - 1, lingers: lingerUntil !== undefined });
      return Promise.resolve("1");
    },
  } as unknown as Kv;
  const context = { kv, events: {} as EventLog, runtime } as Parameters<typeof makeDeliveryWriter>[0];
  const writer = makeDeliveryWriter(context, {
    webhook: () => ({ id: "whk_1", accountId: ACCOUNT }) as WebhookRow,
    progress: { cursor: "", failedInARow: 0 } as WebhookProgress,
    cursorAfter: () => "",
    written: () => {},
  }, new AbortController().signal);
  const attempt = { at: 0, status: 200, durationMs: 1, error: null };
  for (let i = 0; i < 251; i++) {
    const event = { ...textEvent(i), id: `evt_${String(i).padStart(20, "0")}`, createdAt: 0 } as LoggedEvent;
    writer.add({ event, previous: null, number: 1, dueAt: null, outcome: { kind: "delivered", attempt } });
  }
  await writer.flushed();
  assert.deepEqual(commits, [
    { deliveries: 1, lingers: true },
    { deliveries: 100, lingers: false },
    { deliveries: 100, lingers: false },
    { deliveries: 50, lingers: true },
  ]);
});

Deno.test("a cursor that moves during a write is written after it", async () => {
  const runtime = testRuntime();
  const written: string[] = [];
  const held = Promise.withResolvers<string>();
  const kv = {
    commit({ mutations }: Change) {
      written.push(mutations.map((mutation) => mutation.kind === "set" && JSON.stringify(mutation.value)).join());
      return written.length === 1 ? held.promise : Promise.resolve("2");
    },
  } as unknown as Kv;
  let cursor = "1";
  const context = { kv, events: {} as EventLog, runtime } as Parameters<typeof makeDeliveryWriter>[0];
  const writer = makeDeliveryWriter(context, {
    webhook: () => ({ id: "whk_1", accountId: ACCOUNT }) as WebhookRow,
    progress: { cursor: "", failedInARow: 0 } as WebhookProgress,
    cursorAfter: () => cursor,
    written: () => {},
  }, new AbortController().signal);
  writer.noteCursor();
  cursor = "2";
  writer.noteCursor();
  held.resolve("1");
  await writer.flushed();
  assert.deepEqual(written, ["1", "2"].map((cursor) => JSON.stringify({ cursor, failedInARow: 0 })));
});
