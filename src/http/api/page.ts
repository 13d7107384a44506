/** Pages of static files that load nothing from anywhere else: the reference. */
import { join } from "node:path";
import type { Hono } from "@hono/hono";
import type { ApiEnv } from "./context.ts";
import { giveFile, type StaticFile, staticFile } from "./static_file.ts";

interface Page {
  /** Where `index.html` stands; the other files stand below. */
  path: string;
  folder: string;
  /** Names of the files beside `index.html`: style sheets and scripts. */
  files: readonly string[];
}

/** No script, style or connection from anywhere but here: an API key is typed into these pages. */
const HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'none'; " +
    "base-uri 'none'; frame-ancestors 'none'",
  // Where a key is bound to domains, the page must say that it comes from here.
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
};

/** Serves the page; returns the paths that it has. */
export function addPage(app: Hono<ApiEnv>, { path: route, folder, files }: Page): string[] {
  const names = new Map([[route, "index.html"], ...files.map((name) => [`${route}/${name}`, name] as const)]);
  for (const [path, name] of names) {
    let file: Promise<StaticFile> | null = null;
    app.get(path, async (c) => {
      c.set("route", route);
      file ??= Deno.readTextFile(join(folder, name)).then((text) => staticFile(name, text));
      return giveFile(c, await file, HEADERS);
    });
  }
  // Many type a slash behind it.
  app.get(`${route}/`, (c) => {
    c.set("route", route);
    return c.redirect(route);
  });
  return [...names.keys()];
}
