/**
 * Where requests arrive. The API and the panel, with a schema for each body they take, are half of what a process loads:
 * they come with the first request that asks for something else than health, and from then on nothing stands before them.
 */
import type { Hono } from "@hono/hono";
import type { OnDemand } from "../base/single_flight.ts";
import type { ApiEnv } from "./api/context.ts";

/** What gives each request its answer. */
export type Answers = Pick<Hono<ApiEnv>, "fetch">;

/** `health` answers at its own paths until the API, which has them too, is loaded. */
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
