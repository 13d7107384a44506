/**
 * The web panel: static files that use the public API, and the routes of `http/resources/account.ts` that manage a key, with the
 * key that the owner signs in with.
 */
import type { Hono } from "@hono/hono";
import type { ApiEnv } from "../http/api/context.ts";
import { addPage } from "../http/api/page.ts";

export function addPanel(app: Hono<ApiEnv>): void {
  const files = ["panel.css", "panel.js", "account.js", "sessions.js", "call.js", "dom.js"];
  addPage(app, { path: "/panel", folder: import.meta.dirname!, files });
  // Relative, so that it holds below a proxy's path too.
  app.get("/", (c) => c.req.header("accept")?.includes("text/html") ? c.redirect("panel") : c.notFound());
}
