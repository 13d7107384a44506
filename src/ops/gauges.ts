/** Gauges, read at each request for `/metrics`. Their cost does not grow with the history or with idle lines. */
import { eventKeys } from "../event/rows.ts";
import { dataKeys } from "../data/rows.ts";
import type { LineStatus } from "../line/line.ts";
import type { Metrics } from "./metrics.ts";
import type { QueuedCount } from "../message/history/counts.ts";
import { oldestWaiting } from "../message/queue/across_lines.ts";
import { aheadMs, type Clock, type Runtime } from "../runtime.ts";
import { webhookKeys } from "../webhook/rows.ts";
import type { Kv } from "../store/kv.ts";
import { storeKeys } from "../store/layers/rows.ts";
import type { Network } from "../whatsapp/network.ts";

/** Waiting retries are counted up to this number, because each costs the read of a row. */
const MOST_RETRIES_COUNTED = 10_000;

interface GaugeSources {
  kv: Kv;
  network: Pick<Network, "webVersion">;
  runtime: Pick<Runtime, "clock" | "confirmed">;
  lines: { countByStatus(): Readonly<Record<LineStatus, number>>; countDegraded(): number };
  queuedCount: QueuedCount;
  /** Number of attempts that wait for their account's turn. */
  webhookAttemptsWaiting(): number;
}

/**
 * Adds the gauges of a worker. Every worker reports the same values for the store: use their maximum, not their sum.
 */
export function addGauges(
  metrics: Metrics,
  { kv, runtime, network, lines, queuedCount, webhookAttemptsWaiting }: GaugeSources,
): void {
  metrics.gauge(
    "paloma_clock_unconfirmed_seconds",
    "How far the system's clock jumped ahead of the confirmed time, by which data expires and is deleted",
    () => runtime.confirmed.aheadMs() / 1000,
  );
  metrics.gaugeBy("status", {
    name: "paloma_lines",
    help: "Lines by status",
    read: () => lines.countByStatus(),
  });
  metrics.gauge(
    "paloma_lines_degraded",
    "Lines that are connected but receive nothing, or nothing readable, even after a reconnect",
    () => lines.countDegraded(),
  );
  metrics.gaugeBy("version", {
    name: "paloma_whatsapp_web_version",
    help: "1 for the announced version of WhatsApp Web",
    read() {
      const announced = network.webVersion();
      return announced ? { [`${announced.version} (${announced.source})`]: 1 } : {};
    },
  });
  metrics.gauge(
    "paloma_whatsapp_web_version_age_seconds",
    "Time since the announced version of WhatsApp Web was learned; 0 before a line has connected",
    () => Math.max(0, runtime.clock.now() - (network.webVersion()?.since ?? runtime.clock.now())) / 1000,
  );
  metrics.gauge(
    "paloma_event_bytes_most",
    "Bytes of the events of the account that has most, with what is kept beside them",
    () => mostBytes(kv),
  );
  metrics.gauge(
    "paloma_last_backup_timestamp_seconds",
    "When the last backup was made, Unix seconds; 0 if none was",
    async () => ((await kv.get(dataKeys.backedUpAt())).value ?? 0) / 1000,
  );
  metrics.gauge(
    "paloma_store_log_missing_timestamp_seconds",
    "When the store was last opened without the log of a killed process, Unix seconds; 0 if never",
    async () => ((await kv.get(storeKeys.logMissing())).value ?? 0) / 1000,
  );
  metrics.gauge("paloma_messages_queued", "Messages waiting in the queues of all lines", queuedCount);
  metrics.gauge(
    "paloma_webhook_retries_waiting",
    `Webhook deliveries waiting for another attempt, counted up to ${MOST_RETRIES_COUNTED}`,
    () => countRows(kv),
  );
  metrics.gauge(
    "paloma_webhook_attempts_waiting",
    "Webhook attempts waiting for their account's turn",
    webhookAttemptsWaiting,
  );
  metrics.gauge(
    "paloma_queue_oldest_seconds",
    "Age of the message that has waited longest at the head of a line's queue",
    () => oldestSeconds(kv, runtime.clock),
  );
}

/** Adds the gauges of every process. `connections`: the number of open client connections. */
export function addProcessGauges(metrics: Metrics, { connections }: { connections(): number }): void {
  metrics.gauge("paloma_http_connections", "Open connections of clients", connections);
  metrics.gauge(
    "paloma_clock_ahead_seconds",
    "How far the gateway's time is ahead of the system's, which was set back while it ran",
    () => aheadMs() / 1000,
  );
  metrics.gauge("process_resident_memory_bytes", "Memory of the process", () => Deno.memoryUsage().rss);
}

async function countRows(kv: Kv): Promise<number> {
  let count = 0;
  for await (const _ of kv.list({ prefix: webhookKeys.allDueAttempts() }, { limit: MOST_RETRIES_COUNTED })) count++;
  return count;
}

async function mostBytes(kv: Kv): Promise<number> {
  let most = 0n;
  for await (const { value } of kv.list({ prefix: eventKeys.allEventBytes() })) if (value > most) most = value;
  return Number(most);
}

async function oldestSeconds(kv: Kv, clock: Clock): Promise<number> {
  const since = await oldestWaiting(kv);
  // It may have been accepted by a clock that was ahead.
  return since === null ? 0 : Math.max(0, clock.now() - since) / 1000;
}
