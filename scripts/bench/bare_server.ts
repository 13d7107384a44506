/** The baselines of the API: bare Hono on the gateway's HTTP stack, with one raw commit a request or without storage. */
import { Hono } from "@hono/hono";
import type { ApiEnv } from "../../src/http/api/context.ts";
import { listen } from "../../src/http/listen/listen.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { runAsChild } from "./child.ts";

export interface BareServer {
  /** Where a message is kept; null: nowhere. */
  path: string | null;
}

if (import.meta.main) {
  await runAsChild<BareServer>(async ({ path }) => {
    const kv = path === null ? null : await Deno.openKv(path);
    const app = new Hono<ApiEnv>();
    app.post("/send", async (c) => {
      const message = await c.req.json();
      const messageId = crypto.randomUUID();
      await kv?.set(["message", messageId], message);
      return c.json({ messageId, status: "queued" }, 202);
    });
    const server = await listen(app, { host: "127.0.0.1", port: 0, runtime: systemRuntime(makeLog("silent")) });
    return {
      ready: { url: server.url },
      async stop() {
        await server.stop(0);
        kv?.close();
      },
    };
  });
}
