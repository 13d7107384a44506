/**
 * `/openapi.json`, and `/docs`: the reference, rendered from it in the browser, and the guides. Needs no other host.
 */
import { join } from "node:path";
import type { Hono } from "@hono/hono";
import { onDemand } from "../../base/single_flight.ts";
import { shipped } from "../../shipped.ts";
import type { ApiContext, ApiEnv } from "../api/context.ts";
import type { PathIndex } from "../api/path_index.ts";
import { giveFile, PAGE_HEADERS, type StaticFile, staticFile } from "../api/static_file.ts";
import { guideImage, guideLinks, guidePage, guides } from "./guides.ts";
import { openApiDocument } from "./openapi.ts";

const FOLDER = shipped("src/http/docs/web");
const FILES = [
  "theme.css",
  "docs.css",
  "docs.js",
  "dom.js",
  "guide.js",
  "samples.js",
  "schema.js",
  "side.js",
  "try_it.js",
];

export function addDocs(app: Hono<ApiEnv>, paths: PathIndex): void {
  function serve(path: string, make: () => Promise<StaticFile>, headers: Record<string, string> = PAGE_HEADERS): void {
    const file = onDemand(make);
    app.get(path, async (c) => {
      c.set("route", path);
      return giveFile(c, await file.need(), headers);
    });
    paths.add("GET", path);
  }
  /** `to` is relative, so that it also works below a proxy's path. */
  function redirect(from: string, to: string): void {
    app.get(from, (c: ApiContext) => {
      c.set("route", "/docs");
      return c.redirect(to);
    });
  }
  const read = (name: string) => Deno.readTextFile(join(FOLDER, name));

  serve("/openapi.json", () => Promise.resolve(staticFile("openapi.json", JSON.stringify(openApiDocument()))), {});
  serve("/docs", async () => {
    const text = await read("index.html");
    return staticFile("index.html", text.replace("{guides}", guideLinks("docs/guides/", null)));
  });
  for (const name of FILES) serve(`/docs/${name}`, async () => staticFile(name, await read(name)));
  for (const guide of guides()) {
    serve(`/docs/guides/${guide.name}`, async () => staticFile("guide.html", await guidePage(guide)));
  }
  app.get("/docs/guides/images/:name{[a-z0-9-]+\\.png}", async (c) => {
    c.set("route", "/docs/guides/images");
    const image = await guideImage(c.req.param("name"));
    if (image === null) return c.notFound();
    return c.body(image, 200, { ...PAGE_HEADERS, "content-type": "image/png", "cache-control": "max-age=3600" });
  });
  // For addresses typed with a trailing slash.
  redirect("/docs/", "../docs");
  redirect("/docs/guides", "../docs");
  redirect("/docs/guides/", "../../docs");
}
