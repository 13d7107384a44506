/** What operators and their tools ask: alive, ready, how busy. No key; the gateway binds to loopback unless told otherwise. */
import { z } from "@hono/zod-openapi";
import { within } from "../../base/within.ts";
import { type Api, ok, route } from "../api/route.ts";
import type { Services } from "../api/services.ts";

/** A storage that takes longer than this is no storage for a request that waits. */
const PROBE_MS = 2_000;

const State = z.object({ status: z.enum(["ok", "stopping", "storage_unavailable"]) }).openapi("Health");
const base = { method: "get", tag: "Operations", access: "open", problems: [] } as const;

const healthz = route({
  ...base,
  path: "/healthz",
  operationId: "getHealth",
  summary: "Is the process alive",
  answers: { 200: { description: "It answers", schema: State } },
});

const readyz = route({
  ...base,
  path: "/readyz",
  operationId: "getReadiness",
  summary: "Can it take requests",
  answers: {
    200: { description: "It can", schema: State },
    503: { description: "The storage takes no writes, or it is stopping", schema: State },
  },
});

const metricsRoute = route({
  ...base,
  path: "/metrics",
  operationId: "getMetrics",
  summary: "Counters and gauges for Prometheus",
  answers: { 200: { description: "Text format 0.0.4", schema: null, contentType: "text/plain" } },
});

export const healthRoutes = [healthz, readyz, metricsRoute];

export function addHealth(
  api: Pick<Api, "onOpen">,
  services: Pick<Services, "metrics" | "probe" | "stopping" | "runtime">,
): void {
  const { metrics, stopping } = services;
  api.onOpen(healthz, () => Promise.resolve(ok({ status: "ok" })));

  api.onOpen(readyz, async () => {
    if (stopping.aborted) return { status: 503, body: { status: "stopping" } };
    const ready = await storageAnswers(services);
    return ready ? ok({ status: "ok" }) : { status: 503, body: { status: "storage_unavailable" } };
  });

  api.onOpen(
    metricsRoute,
    async ({ c }) =>
      c.body(await metrics.render(), 200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }),
  );
}

async function storageAnswers({ probe, runtime }: Pick<Services, "probe" | "runtime">): Promise<boolean> {
  try {
    return await within(runtime.clock, PROBE_MS, probe()) !== "late";
  } catch {
    return false;
  }
}
