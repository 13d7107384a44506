/** `/openapi.json`, and `/docs`: a page of static files that shows it, offline. */
import { join } from "node:path";
import type { Hono } from "@hono/hono";
import type { ApiEnv } from "./context.ts";
import { openApiDocument } from "./openapi.ts";
import type { PathIndex } from "./path_index.ts";

const FILES: Readonly<Record<string, { name: string; type: string }>> = {
  "/docs": { name: "index.html", type: "text/html; charset=utf-8" },
  "/docs/docs.css": { name: "docs.css", type: "text/css; charset=utf-8" },
  "/docs/docs.js": { name: "docs.js", type: "text/javascript; charset=utf-8" },
  "/docs/dom.js": { name: "dom.js", type: "text/javascript; charset=utf-8" },
  "/docs/samples.js": { name: "samples.js", type: "text/javascript; charset=utf-8" },
  "/docs/schema.js": { name: "schema.js", type: "text/javascript; charset=utf-8" },
  "/docs/try_it.js": { name: "try_it.js", type: "text/javascript; charset=utf-8" },
};

/** Nothing from anywhere but here: an API key is typed into this page. */
const HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; " +
    "frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-cache",
};

export function addDocs(app: Hono<ApiEnv>, paths: PathIndex): void {
  for (const path of ["/openapi.json", ...Object.keys(FILES)]) paths.add("GET", path);
  app.get("/openapi.json", (c) => {
    c.set("route", "/openapi.json");
    return c.json(openApiDocument());
  });
  for (const [path, { name, type }] of Object.entries(FILES)) {
    app.get(path, async (c) => {
      c.set("route", "/docs");
      const content = await Deno.readFile(join(import.meta.dirname!, "docs", name));
      return c.body(content, 200, { ...HEADERS, "content-type": type });
    });
  }
}
