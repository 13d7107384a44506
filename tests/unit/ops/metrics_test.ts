import assert from "node:assert/strict";
import { makeMetrics } from "../../../src/ops/metrics.ts";

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
