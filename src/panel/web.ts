/**
 * Serves the pages: one document for every path below `/panel`, and the files that it loads, none of them from another
 * site. All are sent compressed, with an ETag. URLs are relative, so the panel also works below a proxy's path.
 */
import { join } from "node:path";
import type { Hono } from "@hono/hono";
import htm from "htm" with { type: "text" };
import preact from "preact" with { type: "text" };
import hooks from "preact/hooks" with { type: "text" };
import { unlessMissing } from "../base/files.ts";
import type { ApiContext, ApiEnv } from "../http/api/route.ts";
import { giveFile, PAGE_HEADERS, type StaticFile, staticFile } from "../http/api/static_file.ts";
import { shipped } from "../shipped.ts";
import type { Person } from "./rows.ts";
import { find, OPEN, pagesOf } from "./web/routes.js";

const FOLDER = shipped("src/panel/web");
const ASSETS = "/panel/assets";

/**
 * The npm packages as one module, because a browser can neither resolve bare names nor ask for many files at a time. Each
 * has a scope of its own: their short names are the same.
 */
const LIBRARIES = [
  `const preact = ${inScope(preact)}, hooks = ${inScope(hooks)};`,
  `export const htm = ${inScope(htm)};`,
  "export const { h, render } = preact;",
  "export const { useCallback, useEffect, useLayoutEffect, useRef, useState } = hooks;",
].join("\n");

/** Returns an expression for what a minified module exports: its one default, or an object. */
function inScope(code: string): string {
  const given = code.replace(
    /^import\{(\w+) as (\w+)\}from"preact";/,
    "const {$1:$2}=preact;",
  ).replace("export default ", "return ");
  const inside = given.replace(
    /export\{([^{}]+)\}/,
    (_, names: string) => `return{${names.replaceAll(/\b(\w+) as (\w+)/g, "$2:$1")}}`,
  );
  return `(() => {${inside}\n})()`;
}

/** `readerOf` resolves to whoever is signed in in the browser that asks. */
export function addPages(
  app: Hono<ApiEnv>,
  readerOf: (c: ApiContext) => Promise<Pick<Person, "accountId" | "role"> | null>,
): void {
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
    const reader = await readerOf(c);
    const { module = null, first = [] } = find(
      reader ? pagesOf({ operator: reader.accountId === null, role: reader.role }) : OPEN,
      c.req.path.slice("/panel".length),
    ) ??
      {};
    const found = await kept(`${root}${module}.html`, () => documentOf(module, root));
    const link = first.map((path: string) => `<${root}api${path}>; rel=preload; as=fetch; crossorigin`).join();
    // A filtered list asks for something else, and would take this answer once its filter is gone.
    const isAsked = link !== "" && !c.req.raw.url.includes("?");
    return giveFile(c, found!, { ...PAGE_HEADERS, ...(isAsked && { link }) });
  };
  app.get("/panel", page);
  app.get("/panel/*", async (c, next) => {
    // No page for paths of the API or of files.
    if (/^\/panel\/(api|assets)(\/|$)/.test(c.req.path) || c.req.path.split("/").length > 8) return await next();
    return await page(c);
  });
}

/** The document names all modules that its page needs, so that nobody waits for one round trip after another. */
async function documentOf(page: string | null, root: string): Promise<string> {
  const modules = new Set<string>();
  for (const entry of ["main.js", ...(page === null ? [] : [`pages/${page}.js`])]) await addModules(modules, entry);
  const links = [...modules].map((name) => `<link rel="modulepreload" href="{root}assets/${name}">`).join("\n    ");
  const text = await Deno.readTextFile(join(FOLDER, "index.html"));
  return text.replace("{modules}", links).replaceAll("{root}", root);
}

/** Adds the module with this path below `web`, and those that it imports. */
async function addModules(modules: Set<string>, name: string): Promise<void> {
  if (modules.has(name)) return;
  modules.add(name);
  for (const [, imported] of (await readAsset(name))!.matchAll(/\bfrom ?"(\.[^"]+)"/g)) {
    await addModules(modules, join(name, "..", imported!));
  }
}

async function readAsset(name: string): Promise<string | null> {
  if (name === "lib.js") return LIBRARIES;
  const [, language] = /^lang\/([a-z]{2})\.js$/.exec(name) ?? [];
  if (language) return await readWords(language);
  const text = await unlessMissing(Deno.readTextFile(join(FOLDER, name)));
  // One file, because each costs a slow line as much as a large one.
  return name === "panel.css" ? await Deno.readTextFile(shipped("src/http/docs/web/theme.css")) + text : text;
}

/**
 * Returns a language's column of the table of sentences as a module, with a list of those that the gateway says: nobody
 * loads the other languages.
 */
async function readWords(language: string): Promise<string | null> {
  const table = await Deno.readTextFile(join(FOLDER, "lang.tsv"));
  const [head, ...rows] = table.trimEnd().split("\n").map((row) => row.split("\t"));
  const column = head!.indexOf(language);
  if (column < 0) return null;
  const words = Object.fromEntries(rows.map((row) => [row[1], row[column]]));
  // The more words a sentence has of its own, the sooner a text is held against it.
  const own = (sentence: string) => sentence.replaceAll(/\{\w+\}/g, "").length;
  const said = rows.flatMap(([by, english]) => by === "gateway" ? [english!] : []).sort((a, b) => own(b) - own(a));
  return `export default ${JSON.stringify(words)};\nexport const said = ${JSON.stringify(said)};`;
}
