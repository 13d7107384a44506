/** `/openapi.json`, and `/docs`: a page of static files that shows it, offline. */
import type { Hono } from "@hono/hono";
import type { ApiEnv } from "../api/context.ts";
import { openApiDocument } from "./openapi.ts";
import { addPage } from "../api/page.ts";
import type { PathIndex } from "../api/path_index.ts";
import { giveFile, type StaticFile, staticFile } from "../api/static_file.ts";

const PAGE = {
  path: "/docs",
  folder: import.meta.dirname!,
  files: ["theme.css", "docs.css", "docs.js", "dom.js", "samples.js", "schema.js", "try_it.js"],
};

export function addDocs(app: Hono<ApiEnv>, paths: PathIndex): void {
  let document: StaticFile | null = null;
  app.get("/openapi.json", (c) => {
    c.set("route", "/openapi.json");
    document ??= staticFile("openapi.json", JSON.stringify(openApiDocument()));
    return giveFile(c, document, {});
  });
  for (const path of ["/openapi.json", ...addPage(app, PAGE)]) paths.add("GET", path);
}
