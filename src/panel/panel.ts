/** The web panel: three static files that use the public API with the key that the owner signs in with. */
import { join } from "node:path";
import { Hono } from "@hono/hono";

const FILES = {
  "/": { name: "index.html", type: "text/html; charset=utf-8" },
  "/panel.css": { name: "panel.css", type: "text/css; charset=utf-8" },
  "/panel.js": { name: "panel.js", type: "text/javascript; charset=utf-8" },
} as const;

/** No script, style or connection from anywhere but here: an API key is typed into this page. */
const HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'none'; " +
    "base-uri 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-cache",
};

/** The routes below `/panel`. */
export function panel(): Hono {
  const app = new Hono();
  for (const [path, { name, type }] of Object.entries(FILES)) {
    app.get(path, async (c) => {
      const content = await Deno.readFile(join(import.meta.dirname!, name));
      return c.body(content, 200, { ...HEADERS, "content-type": type });
    });
  }
  return app;
}
