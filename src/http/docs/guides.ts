/**
 * How to start, and the guides: the pages of `docs/` and `docs/recipes/`, rendered with a menu, an outline, and links to
 * the pages before and after.
 */
import { join } from "node:path";
import { unlessMissing } from "../../base/files.ts";
import { shipped } from "../../shipped.ts";
import { CONTENTS } from "./contents.ts";

const DOCS = shipped("docs");
const FOLDERS = ["", "recipes/"];

/** The page that `/docs` opens with, in these languages. It is no guide. */
const START: Readonly<Record<string, string>> = { en: "start", es: "es/start", pt: "pt/start" };

export interface Guide {
  /** Path of the file below `docs/`, without its extension: `webhooks`, `recipes/first-message`. */
  name: string;
  title: string;
  markdown: string;
}

let found: Guide[] | null = null;

/** Returns all guides, in the menu's order and then by name; none if they were not shipped. */
export function guides(): Guide[] {
  return found ??= names().map(read);
}

/** Returns how to start, in English. */
export function startGuide(): Guide {
  return read(START.en!);
}

function read(name: string): Guide {
  const markdown = Deno.readTextFileSync(join(DOCS, `${name}.md`));
  return { name, title: /^# (.*)$/m.exec(markdown)?.[1] ?? name, markdown };
}

/** Returns the address of a guide's page below `/docs/`. */
export function addressOf({ name }: Guide): string {
  return name.startsWith("recipes/") ? name : `guides/${name}`;
}

/** Returns the guides that the menu lists. */
export function listedGuides(): Guide[] {
  return guides().filter(({ name }) => LISTED.includes(name));
}

const LISTED = CONTENTS.flatMap(({ pages }) => pages);

function names(): string[] {
  const place = (name: string) => LISTED.includes(name) ? LISTED.indexOf(name) : LISTED.length;
  return FOLDERS.flatMap((folder) =>
    namesIn(join(DOCS, folder)).filter((name) => name.endsWith(".md")).map((name) => folder + name.slice(0, -3))
  ).filter((name) => name !== START.en).sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
}

function namesIn(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** Returns the menu as HTML. `base` leads from the page to `/docs/`; `here` is the guide that is open. */
export function menu(base: string, here: Guide | null): string {
  return CONTENTS.map(({ title, pages }) => {
    const links = guides().filter(({ name }) => pages.includes(name)).map((guide) => {
      const current = guide === here ? ' aria-current="page"' : "";
      return `<a href="${base}${addressOf(guide)}"${current}>${escaped(guide.title)}</a>`;
    });
    return links.length === 0 ? "" : `<section><h2>${title}</h2>\n${links.join("\n")}</section>`;
  }).join("\n");
}

/** Renders the page of a guide into `template`. */
export async function guidePage(guide: Guide, template: string): Promise<string> {
  const { html, outline } = await rendered(guide, "../");
  return template.replace("{title}", () => escaped(guide.title)).replace("{menu}", () => menu("../", guide))
    .replace("{body}", () => html).replace("{outline}", () => outline)
    .replace("{neighbours}", () => neighbours(guide));
}

/** Renders how to start, a section for each language; the browser shows the reader's (`start.js`). */
export async function startPage(): Promise<string> {
  const sections = await Promise.all(
    Object.entries(START).map(async ([language, name]) => {
      const { html } = await rendered(read(name), "docs/");
      // The languages have headings alike.
      const body = html.replaceAll(/(?<=<h\d) id="[^"]*"/g, "");
      return `<section class="guide start" lang="${language}"${language === "en" ? "" : " hidden"}>${body}</section>`;
    }),
  );
  return sections.join("\n");
}

/**
 * Renders a guide's text, which is shipped with the gateway and so trusted. `base` leads from the page to `/docs/`. The
 * renderer is loaded on first use.
 */
async function rendered(guide: Guide, base: string): Promise<{ html: string; outline: string }> {
  const { Marked } = await import("marked");
  const slug = slugger();
  const headings: string[] = [];
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        const id = slug(text);
        const inner = this.parser.parseInline(tokens);
        if (depth === 2) headings.push(`<a href="#${id}">${inner}</a>`);
        return `<h${depth} id="${id}">${inner}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const target = targetOf(href, guide, base);
        return target === null ? text : `<a href="${escaped(target)}">${text}</a>`;
      },
      image: ({ href, text }) =>
        `<img src="${escaped(`${base}guides/${pathFrom(guide, href)}`)}" alt="${escaped(text)}" loading="lazy">`,
    },
  });
  let tables = 0;
  const html = (await marked.parse(guide.markdown)).replaceAll("<pre>", '<pre tabindex="0">')
    .replaceAll(
      "<table>",
      () => `<div class="scroll" tabindex="0" role="region" aria-label="Table ${++tables}"><table>`,
    )
    .replaceAll("</table>", "</table></div>");
  const outline = headings.length < 2
    ? ""
    : `<nav class="outline" aria-label="On this page"><details><summary>On this page</summary>${
      headings.join("\n")
    }</details></nav>`;
  return { html, outline };
}

function neighbours(guide: Guide): string {
  const all = listedGuides();
  const place = all.indexOf(guide);
  const link = (other: Guide | undefined, rel: string, label: string) =>
    other ? `<a rel="${rel}" href="../${addressOf(other)}"><span>${label}</span> ${escaped(other.title)}</a>` : "";
  return place < 0 ? "" : link(all[place - 1], "prev", "Previous") + link(all[place + 1], "next", "Next");
}

/** Resolves to the bytes of a guide's image; null if there is none of this name. */
export function guideImage(name: string): Promise<Uint8Array<ArrayBuffer> | null> {
  return unlessMissing(Deno.readFile(join(DOCS, "images", name)));
}

/** Returns the target of a guide's link on this site; null for files that only the source has. */
function targetOf(href: string, guide: Guide, base: string): string | null {
  if (/^(https?:|#)/.test(href)) return href;
  const [path, anchor = ""] = href.split(/(?=#)/);
  const wanted = pathFrom(guide, path!);
  if (wanted === `${START.en}.md`) return `${base}../docs#start`;
  const other = guides().find(({ name }) => wanted === `${name}.md`);
  return other ? base + addressOf(other) + anchor : null;
}

/** Returns the path in `docs/` of what a guide names relative to itself; one outside of it begins with `../`. */
function pathFrom({ name }: Guide, href: string): string {
  return join(name, "..", href);
}

/** Returns a function that gives headings of a page the anchors that GitHub gives them, so that links work in both places. */
export function slugger(): (heading: string) => string {
  const used = new Map<string, number>();
  return (heading) => {
    const plain = heading.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
    const times = used.get(plain) ?? 0;
    used.set(plain, times + 1);
    return times === 0 ? plain : `${plain}-${times}`;
  };
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;").replaceAll("`", "");
}
