/**
 * `/openapi.json`, and `/docs`: how to start, and the reference, rendered from that document in the browser. The guides
 * and recipes are pages of their own, from `docs/*.md` and `docs/recipes/*.md`. Needs no other host.
 */
import { dirname, join, normalize } from "node:path";
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
  "start.js",
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
    const start = await startPage();
    return staticFile("index.html", withLinks(text, "docs/", null).replace("{start}", () => start));
  });
  for (const name of FILES) serve(`/docs/${name}`, async () => staticFile(name, await read(name)));
  for (const guide of guides()) {
    serve(`/docs/${addressOf(guide)}`, async () => staticFile("guide.html", await guidePage(guide)));
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

/** Guides and recipes in the order in which a newcomer needs them; others follow by name. */
const ORDER = [
  "recipes/first-message",
  "recipes/invoice-from-php",
  "recipes/incoming-webhook",
  "recipes/answer-a-menu",
  "recipes/offer-to-300",
  "recipes/remind-until-paid",
  "recipes/many-customers",
  "recipes/behind-a-proxy",
  "recipes/monitoring",
  "recipes/from-waha-or-evolution",
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

/** The page that `/docs` opens with, in these languages. It is no guide. */
const START: Readonly<Record<string, string>> = { en: "start", es: "es/start", pt: "pt/start" };

interface Guide {
  /** Path of the file below `docs/`, without its extension: `webhooks`, `recipes/first-message`. */
  name: string;
  title: string;
  markdown: string;
}

let found: Guide[] | null = null;

/** Returns all guides, then all recipes; none if they were not shipped. */
export function guides(): Guide[] {
  return found ??= names().map((name) => {
    const markdown = Deno.readTextFileSync(join(DOCS, `${name}.md`));
    return { name, title: /^# (.*)$/m.exec(markdown)?.[1] ?? name, markdown };
  });
}

const isRecipe = ({ name }: Guide) => name.startsWith("recipes/");

/** Returns the address of its page below `/docs/`. */
function addressOf(guide: Guide): string {
  return isRecipe(guide) ? guide.name : `guides/${guide.name}`;
}

function names(): string[] {
  const place = (name: string) => ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length;
  const inFolder = (folder: string) =>
    [...Deno.readDirSync(join(DOCS, folder))].filter(({ name }) => name.endsWith(".md"))
      .map(({ name }) => folder + name.slice(0, -".md".length))
      .filter((name) => name !== START.en)
      .sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
  try {
    return [...inFolder(""), ...inFolder("recipes/")];
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** Fills the sidebar of a page with links to all recipes and guides; `here` is the one that is open. */
function withLinks(page: string, base: string, here: Guide | null): string {
  const links = (some: Guide[]) =>
    some.map((guide) => {
      // The words by which the search finds the guide.
      const words = [...guide.markdown.matchAll(/^##+ (.*)$/gm)].map(([, heading]) => heading).join(" ");
      const current = guide === here ? ' aria-current="page"' : "";
      const href = base + addressOf(guide);
      return `<a href="${href}" data-words="${escaped(words)}"${current}>${escaped(guide.title)}</a>`;
    }).join("\n");
  return page.replace("{recipes}", () => links(guides().filter(isRecipe)))
    .replace("{guides}", () => links(guides().filter((guide) => !isRecipe(guide))));
}

/** Renders how to start, a section for each language; the browser shows the reader's (`start.js`). */
async function startPage(): Promise<string> {
  const sections = await Promise.all(
    Object.entries(START).map(async ([language, name]) => {
      const markdown = await Deno.readTextFile(join(DOCS, `${name}.md`));
      // The languages have headings alike.
      const body = (await rendered({ name, markdown, title: "" }, "docs/")).replaceAll(/(?<=<h\d) id="[^"]*"/g, "");
      return `<section class="guide start" lang="${language}"${language === "en" ? "" : " hidden"}>${body}</section>`;
    }),
  );
  return sections.join("\n");
}

/**
 * Renders the content of a guide, which is shipped with the gateway and so trusted; `base` leads from its page to
 * `/docs/`. The renderer is loaded on first use.
 */
async function rendered(guide: Guide, base: string): Promise<string> {
  const { Marked } = await import("marked");
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        return `<h${depth} id="${slug(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const target = targetOf(href, guide, base);
        return target === null ? text : `<a href="${escaped(target)}">${text}</a>`;
      },
      image: ({ href, text }) => `<img src="${escaped(href)}" alt="${escaped(text)}" loading="lazy">`,
    },
  });
  let tables = 0;
  return (await marked.parse(guide.markdown)).replaceAll("<pre>", '<pre tabindex="0">')
    .replaceAll(
      "<table>",
      () => `<div class="scroll" tabindex="0" role="region" aria-label="Table ${++tables}"><table>`,
    )
    .replaceAll("</table>", "</table></div>");
}

async function guidePage(guide: Guide): Promise<string> {
  const body = await rendered(guide, "../");
  const page = await Deno.readTextFile(join(FOLDER, "guide.html"));
  return withLinks(page, "../", guide).replace("{title}", () => escaped(guide.title)).replace("{body}", () => body);
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
function targetOf(href: string, { name }: Guide, base: string): string | null {
  if (/^(https?:|#)/.test(href)) return href;
  const [path, anchor = ""] = href.split(/(?=#)/);
  const wanted = normalize(join(dirname(name), path!));
  if (wanted === `${START.en}.md`) return `${base}../docs#start`;
  const other = guides().find((guide) => wanted === `${guide.name}.md`);
  return other ? base + addressOf(other) + anchor : null;
}

/** Returns the anchor that GitHub gives a heading, so that links work in both places. */
function slug(text: string): string {
  return text.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;").replaceAll("`", "");
}
