/**
 * What operators and their tools ask: alive, ready, how busy. No key; the gateway binds to loopback unless told otherwise.
 * A process without an API answers this alone, and one with an API before that is loaded.
 */
import type { Hono } from "@hono/hono";
import type { OnDemand } from "../base/single_flight.ts";
import { keysOf } from "../base/typed_keys.ts";
import { within } from "../base/within.ts";
import type { ApiContext, ApiEnv } from "./api/context.ts";
import { type Answer, ok } from "./api/route.ts";
import type { Services } from "./api/services.ts";
import { makeApp, makeRegister, send } from "./app.ts";
import type { Answers } from "./listen/serve.ts";

/** A storage that takes longer than this is no storage for a request that waits. */
const PROBE_MS = 2_000;

type Needed = Pick<Services, "metrics" | "probe" | "stopping" | "runtime">;

export const HEALTH_PATHS = { healthz: "/healthz", readyz: "/readyz", metrics: "/metrics" } as const;

/** The answers to GET. */
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

/** An app with nothing else. */
export function createHealth(services: Needed): Hono<ApiEnv> {
  const { app, ground } = makeApp(services);
  const register = makeRegister(app, ground);
  const health = makeHealth(services);
  for (const name of keysOf(HEALTH_PATHS)) {
    register({ method: "get", path: HEALTH_PATHS[name] }, async (c) => send(c, await health[name](c)));
  }
  return app;
}

/**
 * Where requests arrive. The API and the panel, with a schema for each body they take, are half of what a process loads:
 * they come with the first request that asks for something else than health, and from then on nothing stands before them.
 * `health` answers at its own paths until the API, which has them too, is loaded.
 */
export function inFrontOf(api: OnDemand<Hono<ApiEnv>>, health: Hono<ApiEnv>): Answers {
  const paths = new Set(health.routes.map(({ path }) => path));
  return {
    fetch(request, ...rest) {
      const app = api.made() ?? (paths.has(new URL(request.url).pathname) ? health : null);
      if (app) return app.fetch(request, ...rest);
      return api.need().then((app) => app.fetch(request, ...rest));
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
