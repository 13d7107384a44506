/**
 * `/mcp`: the Model Context Protocol by its official SDK, over streamable HTTP, without sessions. Each tool calls an
 * operation of the API on the caller's behalf, so that scopes, quotas, limits and errors are the API's. Loaded when
 * first asked.
 */
import type { Hono } from "@hono/hono";
import { onDemand } from "../base/single_flight.ts";
import type { ApiContext, ApiEnv } from "../http/api/route.ts";
import type { Services } from "../http/api/services.ts";

/** Adds the route, which takes the key as `x-api-key` or as a bearer. */
export function addMcp(app: Hono<ApiEnv>, { admission }: Services): void {
  const server = onDemand(async () => (await import("./server.ts")).makeMcpServer(app));
  app.all("/mcp", async (c: ApiContext) => {
    c.set("route", "/mcp");
    const caller = await admission.authenticate(c, "bearer");
    await admission.count(c, caller);
    return await (await server.need()).answer(c, caller);
  });
}
