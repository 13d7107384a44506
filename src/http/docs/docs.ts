/**
 * `/openapi.json`, and `/docs`: the reference, rendered from it in the browser, and the guides, which are `docs/*.md` as
 * pages. Needs no other host.
 */
import { join } from "node:path";
import type { Hono } from "@hono/hono";
import { onDemand } from "../../base/single_flight.ts";
import { shipped } from "../../shipped.ts";
import type { ApiContext, ApiEnv } from "../api/route.ts";
import type { PathIndex } from "../app.ts";
import { giveFile, PAGE_HEADERS, type StaticFile, staticFile } from "../api/static_file.ts";
import { openApiDocument } from "./openapi.ts";

const DOCS = shipped("docs");
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

/** Guides in the order in which a newcomer needs them; others follow by name. */
const ORDER = [
  "linking",
  "sessions",
  "consent",
  "messages",
  "media",
  "groups",
  "webhooks",
  "events",
  "sandbox",
  "cloud-testing",
  "queue",
  "accounts",
  "limits",
  "panel",
  "operate",
  "backup",
  "upgrade",
  "proxy",
  "machines",
  "migrate",
];

interface Guide {
  /** Name of the file without its extension. */
  name: string;
  title: string;
  markdown: string;
}

let found: Guide[] | null = null;

/** Returns all guides; none if they were not shipped. */
export function guides(): Guide[] {
  return found ??= names().map((name) => {
    const markdown = Deno.readTextFileSync(join(DOCS, `${name}.md`));
    return { name, title: /^# (.*)$/m.exec(markdown)?.[1] ?? name, markdown };
  });
}

function names(): string[] {
  const place = (name: string) => ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length;
  try {
    return [...Deno.readDirSync(DOCS)].filter(({ name }) => name.endsWith(".md"))
      .map(({ name }) => name.slice(0, -".md".length))
      .sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** Returns links to all guides, for the sidebar; `here` is the guide that is open. */
function guideLinks(base: string, here: Guide | null): string {
  return guides().map((guide) => {
    // The words by which the search finds the guide.
    const words = [...guide.markdown.matchAll(/^##+ (.*)$/gm)].map(([, heading]) => heading).join(" ");
    const current = guide === here ? ' aria-current="page"' : "";
    return `<a href="${base}${guide.name}" data-words="${escaped(words)}"${current}>${escaped(guide.title)}</a>`;
  }).join("\n");
}

/**
 * Renders the page of a guide, whose content is shipped with the gateway and so trusted. The renderer is loaded on first
 * use.
 */
async function guidePage(guide: Guide): Promise<string> {
  const { Marked } = await import("marked");
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        return `<h${depth} id="${slug(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const target = addressOf(href);
        return target === null ? text : `<a href="${escaped(target)}">${text}</a>`;
      },
      image: ({ href, text }) => `<img src="${escaped(href)}" alt="${escaped(text)}" loading="lazy">`,
    },
  });
  let tables = 0;
  const body = (await marked.parse(guide.markdown)).replaceAll("<pre>", '<pre tabindex="0">')
    .replaceAll(
      "<table>",
      () => `<div class="scroll" tabindex="0" role="region" aria-label="Table ${++tables}"><table>`,
    )
    .replaceAll("</table>", "</table></div>");
  const page = await Deno.readTextFile(join(FOLDER, "guide.html"));
  return page.replace("{title}", () => escaped(guide.title)).replace("{guides}", () => guideLinks("", guide))
    .replace("{body}", () => body);
}

/** Resolves to the bytes of a guide's image; null if there is none of this name. */
async function guideImage(name: string): Promise<Uint8Array<ArrayBuffer> | null> {
  try {
    return await Deno.readFile(join(DOCS, "images", name));
  } catch {
    return null;
  }
}

/** Returns the target of a guide's link on this site; null for files that only the source has. */
function addressOf(href: string): string | null {
  if (/^(https?:|#)/.test(href)) return href;
  const other = /^([a-z]+)\.md(#.*)?$/.exec(href);
  return other && guides().some(({ name }) => name === other[1]) ? `${other[1]}${other[2] ?? ""}` : null;
}

/** Returns the anchor that GitHub gives a heading, so that links work in both places. */
function slug(text: string): string {
  return text.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;").replaceAll("`", "");
}
