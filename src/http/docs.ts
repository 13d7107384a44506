/** `/openapi.json` and `/docs`. */
import type { Hono } from "@hono/hono";
import type { ApiEnv } from "./context.ts";
import { openApiDocument } from "./openapi.ts";

export function addDocs(app: Hono<ApiEnv>): void {
  app.get("/openapi.json", (c) => c.json(openApiDocument()));
}
