/**
 * What operators and their tools ask: alive, ready, how busy. No key; the gateway binds to loopback unless told otherwise.
 * A process without an API answers this alone, and one with an API before that is loaded.
 */
import type { Hono } from "@hono/hono";
import { keysOf } from "../base/typed_keys.ts";
import { within } from "../base/within.ts";
import type { ApiContext, ApiEnv } from "./api/context.ts";
import { type Answer, ok } from "./api/route.ts";
import type { Services } from "./api/services.ts";
import { makeApp, makeRegister, send } from "./app.ts";

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

async function storageAnswers({ probe, runtime }: Needed): Promise<boolean> {
  try {
    return await within(runtime.clock, PROBE_MS, probe()) !== "late";
  } catch {
    return false;
  }
}
