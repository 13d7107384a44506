import assert from "node:assert/strict";
import { addGauges, addProcessGauges } from "../../../src/ops/gauges.ts";
import { eventKeys } from "../../../src/event/rows.ts";
import { makeQueuedCount } from "../../../src/message/history/counts.ts";
import { positionAt } from "../../../src/message/queue/place.ts";
import { makeMetrics, type Metrics } from "../../../src/ops/metrics.ts";
import { webhookKeys } from "../../../src/webhook/rows.ts";
import { Change, StoreError } from "../../../src/store/kv.ts";
import { storeKeys } from "../../../src/store/layers/rows.ts";
import { connectedWorld } from "../../support/line_world.ts";

function gaugesOf({ kv, network, runtime, supervisor }: Awaited<ReturnType<typeof connectedWorld>>): Metrics {
  const metrics = makeMetrics();
  const queuedCount = makeQueuedCount(kv);
  addGauges(metrics, { kv, network, runtime, lines: supervisor, queuedCount, webhookAttemptsWaiting: () => 0 });
  return metrics;
}

Deno.test("the gauges tell lines by status, what waits, and the memory", async () => {
  const world = await connectedWorld();
  await world.addLine("ses_2", { linked: false, halted: true });
  const retries = new Change();
  for (const order of ["a", "b", "c"]) retries.set(webhookKeys.dueAttempt("whk_1", world.clock.now(), order), 2);
  retries.add(eventKeys.eventBytes("acc_2"), 5_000_000).add(eventKeys.eventBytes("acc_3"), 2_000_000);
  retries.set(storeKeys.logMissing(), 1_768_000_000_000);
  await world.kv.commit(retries);
  await world.clock.advance(2_000);
  world.clock.jump(2 * 3_600_000);

  const metrics = gaugesOf(world);
  addProcessGauges(metrics, { connections: () => 7 });
  const lines = (await metrics.render()).split("\n");
  for (
    const expected of [
      'paloma_lines{status="connected"} 1',
      'paloma_lines{status="disconnected"} 1',
      'paloma_lines{status="qr"} 0',
      "paloma_lines_degraded 0",
      "paloma_clock_unconfirmed_seconds 7200",
      'paloma_whatsapp_web_version{version="2.3000.1 (setting)"} 1',
      "paloma_whatsapp_web_version_age_seconds 0",
      "paloma_last_backup_timestamp_seconds 0",
      "paloma_store_log_missing_timestamp_seconds 1768000000",
      "paloma_messages_queued 0",
      "paloma_webhook_retries_waiting 3",
      "paloma_event_bytes_most 5000000",
      "paloma_http_connections 7",
    ]
  ) assert.ok(lines.includes(expected), `${expected} is missing in\n${lines.join("\n")}`);
  const memory = lines.find((line) => line.startsWith("process_resident_memory_bytes "));
  assert.ok(Number(memory?.split(" ")[1]) > 2 ** 20, `memory: ${memory}`);
  assert.ok(lines.some((line) => line.startsWith("paloma_clock_ahead_seconds ")), "nothing tells of a clock set back");

  world.kv.trouble = new StoreError("locked", "another process holds it");
  const inTrouble = await metrics.render();
  assert.ok(!inTrouble.includes("paloma_messages_queued"), "a number that nobody could read");
  assert.ok(inTrouble.includes('paloma_lines{status="connected"} 1'));
  world.kv.trouble = null;
  await world.supervisor.stop();
});

Deno.test("a message that a clock accepted which was ahead has not waited", async () => {
  const world = await connectedWorld();
  await world.addLine("ses_2", { linked: false, halted: true });
  await world.accept("ses_2", { position: positionAt(world.clock.now() + 3_600_000) });
  const metrics = gaugesOf(world);
  assert.match(await metrics.render(), /^paloma_queue_oldest_seconds 0$/m);
  await world.supervisor.stop();
});
