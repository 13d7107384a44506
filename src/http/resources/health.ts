/** The routes of `health.ts`, for the reference. */
import { z } from "@hono/zod-openapi";
import { type Api, route } from "../api/route.ts";
import { HEALTH_PATHS, makeHealth } from "../health.ts";

const State = z.object({ status: z.enum(["ok", "stopping", "storage_unavailable"]) }).openapi("Health");
const base = { method: "get", tag: "Operations", access: "open", problems: [] } as const;

const healthz = route({
  ...base,
  path: HEALTH_PATHS.healthz,
  operationId: "getHealth",
  summary: "Is the process alive",
  answers: { 200: { description: "It answers", schema: State } },
});

const readyz = route({
  ...base,
  path: HEALTH_PATHS.readyz,
  operationId: "getReadiness",
  summary: "Can it take requests",
  answers: {
    200: { description: "It can", schema: State },
    503: { description: "The storage takes no writes, or it is stopping", schema: State },
  },
});

const metricsRoute = route({
  ...base,
  path: HEALTH_PATHS.metrics,
  operationId: "getMetrics",
  summary: "Counters and gauges for Prometheus",
  answers: { 200: { description: "Text format 0.0.4", schema: null, contentType: "text/plain" } },
});

export const healthResource = { routes: [healthz, readyz, metricsRoute], add: addHealth };

function addHealth(api: Pick<Api, "onOpen">, services: Parameters<typeof makeHealth>[0]): void {
  const health = makeHealth(services);
  api.onOpen(healthz, health.healthz);
  api.onOpen(readyz, health.readyz);
  api.onOpen(metricsRoute, ({ c }) => health.metrics(c));
}
