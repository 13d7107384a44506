/** The routes of `health.ts`, for the reference. */
import { z } from "@hono/zod-openapi";
import { type Api, routesOf } from "../api/route.ts";
import { HEALTH_PATHS, makeHealth } from "../health.ts";

const State = z.object({ status: z.enum(["ok", "stopping", "storage_unavailable"]) }).openapi("Health");

const routes = routesOf("Operations", {
  getHealth: {
    at: `GET ${HEALTH_PATHS.healthz}`,
    access: "open",
    summary: "Check liveness",
    answers: { 200: { description: "The process is alive", schema: State } },
  },

  getReadiness: {
    at: `GET ${HEALTH_PATHS.readyz}`,
    access: "open",
    summary: "Check readiness",
    answers: {
      200: { description: "The gateway is ready", schema: State },
      503: { description: "The storage does not accept writes, or the gateway is stopping", schema: State },
    },
  },

  getMetrics: {
    at: `GET ${HEALTH_PATHS.metrics}`,
    access: "open",
    summary: "Get Prometheus metrics",
    answers: { 200: { description: "Metrics in the text format 0.0.4", schema: null, contentType: "text/plain" } },
  },
});

export const healthResource = { routes: Object.values(routes), add: addHealth };

function addHealth(api: Api, services: Parameters<typeof makeHealth>[0]): void {
  const health = makeHealth(services);
  api.onOpen(routes.getHealth, health.healthz);
  api.onOpen(routes.getReadiness, health.readyz);
  api.onOpen(routes.getMetrics, ({ c }) => health.metrics(c));
}
