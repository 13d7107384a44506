/**
 * `/mcp`: the Model Context Protocol by its official SDK, over streamable HTTP, without sessions. Each tool calls an
 * operation of the API with the caller's own key, so that scopes, quotas, limits and errors are the API's. Loaded when
 * first asked.
 */
import type { Hono } from "@hono/hono";
import { SCOPES } from "../account/account.ts";
import { onDemand } from "../base/single_flight.ts";
import type { ApiContext, ApiEnv } from "../http/api/route.ts";
import type { Services } from "../http/api/services.ts";
import { makeAuth, makeClientAddress } from "../http/edge/auth.ts";

/** Adds the route, which takes the key as `x-api-key` or as a bearer. */
export function addMcp(
  app: Hono<ApiEnv>,
  { callers, keys, runtime: { clock }, trustedProxies }: Pick<
    Services,
    "callers" | "keys" | "runtime" | "trustedProxies"
  >,
): void {
  const auth = makeAuth({ callers, keys, clock, clientAddress: makeClientAddress(trustedProxies) });
  const server = onDemand(async () => (await import("./server.ts")).makeMcpServer(app));
  app.all("/mcp", async (c: ApiContext) => {
    c.set("route", "/mcp");
    const { key } = await auth.authenticate(c, "bearer");
    return await (await server.need()).answer(c, key?.scopes ?? SCOPES);
  });
}
