/**
 * Serves the pages: one document for every path below `/panel`, and the files that it loads, none of them from another
 * site. All are sent compressed, with an ETag. URLs are relative, so the panel also works below a proxy's path.
 */
import { join } from "node:path";
import type { Hono } from "@hono/hono";
import htm from "htm" with { type: "text" };
import preact from "preact" with { type: "text" };
import hooks from "preact/hooks" with { type: "text" };
import type { ApiContext, ApiEnv } from "../http/api/route.ts";
import { giveFile, PAGE_HEADERS, type StaticFile, staticFile } from "../http/api/static_file.ts";
import { shipped } from "../shipped.ts";

const FOLDER = shipped("src/panel/web");
const ASSETS = "/panel/assets";

/** The modules of npm packages, by path, because a browser cannot resolve bare names. */
const LIBRARIES: Readonly<Record<string, string>> = {
  "preact.js": preact,
  "hooks.js": hooks.replaceAll(/from\s*"preact"/g, 'from"./preact.js"'),
  "htm.js": htm,
};

export function addPages(app: Hono<ApiEnv>): void {
  const files = new Map<string, StaticFile>();
  async function kept(name: string, read: () => Promise<string | null>): Promise<StaticFile | null> {
    const known = files.get(name);
    if (known) return known;
    const text = await read();
    // Missing files are not cached, because there are endless names.
    if (text === null) return null;
    const file = staticFile(name, text);
    files.set(name, file);
    return file;
  }

  app.get(`${ASSETS}/:name{[a-z0-9_]+(/[a-z0-9_]+)?\\.(js|css|svg)}`, async (c) => {
    c.set("route", ASSETS);
    const name = c.req.param("name");
    const found = await kept(name, () => readAsset(name));
    return found ? giveFile(c, found, PAGE_HEADERS) : c.notFound();
  });

  const page = async (c: ApiContext) => {
    c.set("route", "/panel");
    // How deep below `/panel` the browser's URL is.
    const depth = c.req.path.split("/").length - 2;
    const root = depth === 0 ? "panel/" : "../".repeat(depth - 1) || "./";
    const found = await kept(
      `${root}index.html`,
      async () => (await Deno.readTextFile(join(FOLDER, "index.html"))).replaceAll("{root}", root),
    );
    return giveFile(c, found!, PAGE_HEADERS);
  };
  app.get("/panel", page);
  app.get("/panel/*", async (c, next) => {
    // No page for paths of the API or of files.
    if (/^\/panel\/(api|assets)(\/|$)/.test(c.req.path) || c.req.path.split("/").length > 8) return await next();
    return await page(c);
  });
}

async function readAsset(name: string): Promise<string | null> {
  const library = /^lib\/(.*)$/.exec(name)?.[1];
  if (library) return LIBRARIES[library] ?? null;
  try {
    return await Deno.readTextFile(join(FOLDER, name));
  } catch {
    return null;
  }
}
