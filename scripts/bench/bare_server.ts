/** The baselines of the API: bare Hono on the gateway's HTTP stack, with one raw commit a request or without storage. */
import { Hono } from "@hono/hono";
// @ts-types="@types/pg"
import pg from "pg";
import type { ApiEnv } from "../../src/http/api/route.ts";
import { listen } from "../../src/http/listen/listen.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { runAsChild } from "./child.ts";

interface BareServer {
  /** Where a message is kept: a file of Deno KV, a database by its URL; null: nowhere. */
  path: string | null;
}

/** Connections of the bare server to a database. */
const CONNECTIONS = 16;

interface RawStore {
  /** One commit. */
  keep(id: string, message: unknown): Promise<unknown>;
  close(): unknown;
}

async function openRaw(path: string | null): Promise<RawStore> {
  if (path === null) return { keep: () => Promise.resolve(), close() {} };
  if (!path.startsWith("postgres:")) {
    const kv = await Deno.openKv(path);
    return { keep: (id, message) => kv.set(["message", id], message), close: () => kv.close() };
  }
  const pool = new pg.Pool({ connectionString: path, max: CONNECTIONS });
  await pool.query("create table if not exists message (id text primary key, content jsonb not null)");
  return {
    keep: (id, message) => pool.query("insert into message values ($1, $2)", [id, message]),
    close: () => pool.end(),
  };
}

if (import.meta.main) {
  await runAsChild<BareServer>(async ({ path }) => {
    const store = await openRaw(path);
    const app = new Hono<ApiEnv>();
    app.post("/send", async (c) => {
      const message = await c.req.json();
      const messageId = crypto.randomUUID();
      await store.keep(messageId, message);
      return c.json({ messageId, status: "queued" }, 202);
    });
    const server = await listen(app, { host: "127.0.0.1", port: 0, runtime: systemRuntime(makeLog("silent")) });
    return {
      ready: { url: server.url },
      async stop() {
        await server.stop(0);
        await store.close();
      },
    };
  });
}
