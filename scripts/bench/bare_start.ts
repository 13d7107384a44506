/** The baseline of the start: Hono and a Deno KV file, and nothing else. */
import { join } from "node:path";
import { Hono } from "@hono/hono";

if (import.meta.main) {
  const kv = await Deno.openKv(join(Deno.env.get("PALOMA_DATA_DIR")!, "store"));
  const app = new Hono();
  app.get("/healthz", async (c) => {
    await kv.set(["asked"], true);
    return c.json((await kv.get(["asked"])).value);
  });
  Deno.serve({ hostname: "127.0.0.1", port: Number(Deno.env.get("PALOMA_PORT")), onListen() {} }, app.fetch);
}
