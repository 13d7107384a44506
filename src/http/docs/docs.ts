/**
 * `/openapi.json`, and `/docs`: how to start, and the reference, rendered from that document in the browser. The guides
 * and recipes are pages of their own, and there is a search over all. Needs no other host.
 */
import { join } from "node:path";
import type { Hono } from "@hono/hono";
import { onDemand } from "../../base/single_flight.ts";
import { shipped } from "../../shipped.ts";
import type { ApiContext, ApiEnv } from "../api/route.ts";
import type { PathIndex } from "../app.ts";
import { giveFile, PAGE_HEADERS, type StaticFile, staticFile } from "../api/static_file.ts";
import { addressOf, guideImage, guidePage, guides, menu, startPage } from "./guides.ts";
import { openApiDocument } from "./openapi.ts";
import { searchIndex } from "./search_index.ts";

const FOLDER = shipped("src/http/docs/web");

export function addDocs(app: Hono<ApiEnv>, paths: PathIndex, publicUrl: string | null): void {
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

  serve(
    "/openapi.json",
    () => Promise.resolve(staticFile("openapi.json", JSON.stringify(openApiDocument(publicUrl)))),
    {},
  );
  serve("/docs", async () => {
    const [template, start] = [await read("index.html"), await startPage()];
    return staticFile(
      "index.html",
      template.replace("{menu}", () => menu("docs/", null)).replace("{start}", () => start),
    );
  });
  serve("/docs/search.json", async () => staticFile("search.json", JSON.stringify(await searchIndex())));
  const files = [...Deno.readDirSync(FOLDER)].map(({ name }) => name).filter((name) => !name.endsWith(".html"));
  for (const name of files) serve(`/docs/${name}`, async () => staticFile(name, await read(name)));
  for (const guide of guides()) {
    serve(`/docs/${addressOf(guide)}`, async () => {
      return staticFile("guide.html", await guidePage(guide, await read("guide.html")));
    });
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
