/** The web panel: three static files that use the public API with the key that the owner signs in with. */
import type { Hono } from "@hono/hono";
import type { ApiEnv } from "../http/context.ts";
import { addPage } from "../http/page.ts";

export function addPanel(app: Hono<ApiEnv>): void {
  addPage(app, { path: "/panel", folder: import.meta.dirname!, files: ["panel.css", "panel.js"] });
}
