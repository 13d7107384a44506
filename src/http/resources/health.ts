/** The routes of `health.ts`, for the reference. */
import { z } from "@hono/zod-openapi";
import { type Api, route } from "../api/route.ts";
import type { Services } from "../api/services.ts";
import { HEALTH_PATHS, makeHealth } from "../health.ts";

const State = z.object({ status: z.enum(["ok", "stopping", "storage_unavailable"]) }).openapi("Health");
const base = { method: "get", tag: "Operations", access: "open", problems: [] } as const;

const healthz = route({
  ...base,
  path: HEALTH_PATHS.healthz,
  operationId: "getHealth",
  summary: "Check liveness",
  answers: { 200: { description: "The process is alive", schema: State } },
});

const readyz = route({
  ...base,
  path: HEALTH_PATHS.readyz,
  operationId: "getReadiness",
  summary: "Check readiness",
  answers: {
    200: { description: "The gateway is ready", schema: State },
    503: { description: "The storage does not accept writes, or the gateway is stopping", schema: State },
  },
});

const metricsRoute = route({
  ...base,
  path: HEALTH_PATHS.metrics,
  operationId: "getMetrics",
  summary: "Get Prometheus metrics",
  answers: { 200: { description: "Metrics in the text format 0.0.4", schema: null, contentType: "text/plain" } },
});

export const healthResource = { routes: [healthz, readyz, metricsRoute], add: addHealth };

function addHealth(api: Api, services: Services): void {
  const health = makeHealth(services);
  api.onOpen(healthz, health.healthz);
  api.onOpen(readyz, health.readyz);
  api.onOpen(metricsRoute, ({ c }) => health.metrics(c));
}
