/**
 * Liveness, readiness and metrics, for operators and their tools. They need no key: the gateway binds to loopback by
 * default. A process without an API serves nothing else; a process with one serves these before the API is loaded.
 */
import type { Hono } from "@hono/hono";
import type { OnDemand } from "../base/single_flight.ts";
import { keysOf } from "../base/typed_keys.ts";
import { within } from "../base/within.ts";
import { type Answer, type ApiContext, type ApiEnv, ok } from "./api/route.ts";
import type { Services } from "./api/services.ts";
import { makeApp, send } from "./app.ts";
import type { Answers } from "./listen/serve.ts";

/** Storage that is slower than this counts as unavailable. */
const PROBE_MS = 2_000;

type Needed = Pick<Services, "metrics" | "probe" | "stopping" | "runtime">;

export const HEALTH_PATHS = { healthz: "/healthz", readyz: "/readyz", metrics: "/metrics" } as const;

/** Makes the handlers for GET. */
export function makeHealth(services: Needed) {
  const { metrics, stopping } = services;
  return {
    healthz: () => Promise.resolve(ok({ status: "ok" })),

    async readyz() {
      if (stopping.aborted) return { status: 503, body: { status: "stopping" } };
      const ready = await storageAnswers(services);
      return ready ? ok({ status: "ok" }) : { status: 503, body: { status: "storage_unavailable" } };
    },

    metrics: async (c) =>
      c.body(await metrics.render(), 200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }),
  } satisfies Record<keyof typeof HEALTH_PATHS, (c: ApiContext) => Promise<Answer | Response>>;
}

/** Makes an app that serves nothing else. */
export function createHealth(services: Needed): Hono<ApiEnv> {
  const { app, register } = makeApp(services);
  const health = makeHealth(services);
  for (const name of keysOf(HEALTH_PATHS)) {
    register({ method: "get", path: HEALTH_PATHS[name] }, async (c) => send(c, await health[name](c)));
  }
  return app;
}

/**
 * Returns the entry point for requests. The API and the panel, with their schemas, are half of the code that a process
 * loads, so they are loaded with the first request for anything but health; from then on they get every request. Until
 * then `health` answers at its own paths, which the API has too.
 */
export function inFrontOf(api: OnDemand<Hono<ApiEnv>>, health: Hono<ApiEnv>): Answers {
  const paths = new Set(health.routes.map(({ path }) => path));
  return {
    async fetch(request, ...rest) {
      const app = api.made() ?? (paths.has(new URL(request.url).pathname) ? health : await api.need());
      return await app.fetch(request, ...rest);
    },
  };
}

async function storageAnswers({ probe, runtime }: Needed): Promise<boolean> {
  try {
    return await within(runtime.clock, PROBE_MS, probe()) !== "late";
  } catch {
    return false;
  }
}
