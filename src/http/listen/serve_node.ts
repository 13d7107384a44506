/** Serves on `node:http`, where that ends connections whose headers or bodies do not come. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "@hono/hono";
import type { ApiEnv } from "../api/context.ts";
import { type HttpServer, reachable, type ServeOptions } from "./serve.ts";

/** Where it is a layer over Deno.serve it has none. */
export const NODE_HAS_TIMEOUTS = createServer().headersTimeout !== undefined;

/**
 * Globals stay as Deno made them: the library's own Response would save 10 of 30 µs a request, but is none to `fetch`
 * and `Deno.serve` in the same process.
 */
export async function serveNode(
  app: Hono<ApiEnv>,
  { host, port, clock, limits, unreadable }: ServeOptions,
): Promise<HttpServer> {
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      keepAliveTimeout: limits.keepAliveMs,
      maxHeaderSize: limits.maxHeaderBytes,
    },
    getRequestListener(app.fetch, {
      hostname: reachable(host),
      errorHandler: unreadable,
      overrideGlobalObjects: false,
    }),
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    stop(graceMs) {
      return new Promise((resolve) => {
        const cancel = clock.after(graceMs, () => server.closeAllConnections());
        server.close(() => {
          cancel();
          resolve();
        });
        server.closeIdleConnections();
      });
    },
  };
}
