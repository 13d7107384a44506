import assert from "node:assert/strict";
import { join } from "node:path";
import { EgressError } from "../../../src/egress/egress_error.ts";
import type { SafeFetch } from "../../../src/egress/safe_fetch.ts";
import type { Message } from "../../../src/message/message.ts";
import { makeMetrics, measuredMoves, measuredStore, measuredWebhooks } from "../../../src/ops/metrics.ts";
import { addGauges, addProcessGauges } from "../../../src/ops/gauges.ts";
import { Change, StoreError } from "../../../src/store/kv.ts";
import type { ChunkedKv } from "../../../src/store/layers/chunk.ts";
import { ManualClock } from "../../support/runtime.ts";

const OPS = join(import.meta.dirname!, "..", "..", "..", "ops");

Deno.test("metrics are rendered as Prometheus reads them", async () => {
  const metrics = makeMetrics();
  metrics.requests.inc({ method: "GET", route: '/a"b\\', status: "200" });
  metrics.requests.inc({ method: "GET", route: '/a"b\\', status: "200" }, 2);
  metrics.requestSeconds.observe(0.003);
  metrics.requestSeconds.observe(60);
  metrics.gauge("paloma_lines", "Lines", () => Promise.resolve(3));
  const text = await metrics.render();
  const expected = [
    "# TYPE paloma_http_requests_total counter",
    'paloma_http_requests_total{method="GET",route="/a\\"b\\\\",status="200"} 3',
    'paloma_http_request_duration_seconds_bucket{le="0.0025"} 0',
    'paloma_http_request_duration_seconds_bucket{le="0.005"} 1',
    'paloma_http_request_duration_seconds_bucket{le="+Inf"} 2',
    "paloma_http_request_duration_seconds_count 2",
    "# TYPE paloma_lines gauge",
    "paloma_lines 3",
  ];
  const lines = text.split("\n");
  for (const line of expected) assert.ok(lines.includes(line), `${line} is missing in\n${text}`);
  assert.ok(text.endsWith("\n"));
});

Deno.test("messages are counted by how they end, and timed from departure to the network's word", async () => {
  const metrics = makeMetrics();
  const clock = new ManualClock();
  const moved = measuredMoves(metrics, clock);
  const message = (
    status: Message["status"],
    error: Message["error"] = null,
  ) => ({ id: "m", status, error } as Message);
  moved(message("processing"));
  moved(message("sent"), clock.now() + 400);
  moved(message("processing"));
  moved(message("failed", { code: "refused", message: "" }));
  moved(message("processing"));
  moved(message("queued"));
  moved(message("failed", { code: "cancelled", message: "" }), clock.now() + 400);
  const text = await metrics.render();
  assert.match(text, /^paloma_messages_ended_total\{outcome="sent"\} 1$/m);
  assert.match(text, /^paloma_messages_ended_total\{outcome="refused"\} 1$/m);
  assert.match(text, /^paloma_message_ack_seconds_sum 0\.4$/m);
});

Deno.test("commits and webhook attempts are counted by outcome, and their errors go on", async () => {
  const metrics = makeMetrics();
  const outcomes = ["version", null, new StoreError("full", "no space")];
  const store = measuredStore(
    {
      commit() {
        const outcome = outcomes.shift()!;
        return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome);
      },
    } as Partial<ChunkedKv> as ChunkedKv,
    metrics,
    new ManualClock(),
  );
  assert.equal(await store.commit(new Change()), "version");
  assert.equal(await store.commit(new Change()), null);
  await assert.rejects(store.commit(new Change()), StoreError);

  const answers = [{ status: 204 }, { status: 503 }, new EgressError("timeout", "too slow")];
  const webhooks = measuredWebhooks(
    {
      fetch() {
        const answer = answers.shift()!;
        return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as never);
      },
      vet: () => Promise.resolve(),
      vetProxy: () => Promise.resolve(),
    } as Partial<SafeFetch> as SafeFetch,
    metrics,
  );
  const request = {} as Parameters<typeof webhooks.fetch>[0];
  await webhooks.fetch(request);
  await webhooks.fetch(request);
  await assert.rejects(webhooks.fetch(request), EgressError);
  const text = await metrics.render();
  for (const outcome of ["committed", "conflict", "full"]) {
    assert.ok(text.includes(`paloma_store_commits_total{outcome="${outcome}"} 1`), outcome);
  }
  for (const outcome of ["2xx", "5xx", "timeout"]) {
    assert.ok(text.includes(`paloma_webhook_attempts_total{outcome="${outcome}"} 1`), outcome);
  }
});

Deno.test("dashboard and alert rules ask for metrics that there are", async () => {
  const metrics = makeMetrics();
  const nothing = {} as Parameters<typeof addGauges>[1];
  addGauges(metrics, nothing);
  addProcessGauges(metrics, { connections: () => 0 });
  const known = new Set(metrics.names());
  const asked = new Set<string>();
  for (const file of ["alerts.yaml", "grafana-dashboard.json"]) {
    const text = await Deno.readTextFile(join(OPS, file));
    for (const [name] of text.matchAll(/\b(?:paloma|process)_[a-z_]+/g)) {
      asked.add(name.replace(/_(bucket|sum|count)$/, ""));
    }
  }
  assert.deepEqual([...asked].filter((name) => !known.has(name)), []);
  assert.ok(asked.size >= 10);
});
