/** What the search of the documentation looks through: sections of the guides, and the parts of the reference. */
import type { Token, Tokens } from "marked";
import { CATALOGUE } from "../../errors.ts";
import { addressOf, type Guide, listedGuides, slugger, startGuide } from "./guides.ts";
import { openApiDocument } from "./openapi.ts";
import { resolve, rowsOf } from "./web/schema.js";

interface Section {
  /** Address, relative to that of the index. */
  url: string;
  /** Title of the page. */
  page: string;
  /** Empty for what stands before a page's first heading. */
  heading: string;
  text: string;
}

/** Resolves to all sections, in the order of the menu; the reference comes last. How to start is one place on its page. */
export async function searchIndex(): Promise<Section[]> {
  const { marked } = await import("marked");
  const sectionsOf = (guide: Guide) => split(guide, marked.lexer(guide.markdown));
  const start = sectionsOf(startGuide()).map((section) => ({ ...section, url: "../docs#start" }));
  return [...start, ...listedGuides().flatMap(sectionsOf), ...reference()];
}

function split(guide: Guide, tokens: Token[]): Section[] {
  const slug = slugger();
  const sections: Section[] = [];
  /** The heading that one of the third level stands below. */
  let above = "";
  for (const token of tokens) {
    if (token.type === "heading") {
      const id = slug(token.text);
      const isTitle = token.depth === 1;
      if (token.depth === 2) above = plain(token);
      sections.push({
        url: `${addressOf(guide)}${isTitle ? "" : `#${id}`}`,
        page: guide.title,
        heading: isTitle ? "" : token.depth > 2 ? `${above}: ${plain(token)}` : above,
        text: "",
      });
    } else {
      const section = sections.at(-1);
      if (section) section.text = `${section.text} ${plain(token)}`.trim();
    }
  }
  return sections;
}

/** Returns the words of a token without their marks. */
function plain(token: Token): string {
  if (token.type === "table") {
    const { header, rows } = token as Tokens.Table;
    return [header, ...rows].flat().map(words).join(" ");
  }
  if (token.type === "list") return (token as Tokens.List).items.map(words).join(" ");
  if (token.type === "space" || token.type === "hr" || token.type === "html") return "";
  return "tokens" in token && token.tokens ? words(token) : (token as Tokens.Text).text;
}

/** Returns the words of a token's parts; those of a line follow each other without a gap. */
function words({ tokens = [] }: { tokens?: Token[] }): string {
  return tokens.map(plain).join("");
}

function reference(): Section[] {
  const api = openApiDocument();
  const page = "API reference";
  const members = (schema: unknown) => rowsOf(api, schema).map(({ name }: { name: string }) => name).join(" ");
  const operations = Object.entries(api.paths ?? {}).flatMap(([path, item]) =>
    Object.entries(item!).filter(([, operation]) => typeof operation === "object" && "operationId" in operation)
      .map(([method, operation]) => {
        const [content] = Object.values(operation.requestBody?.content ?? {}) as { schema: unknown }[];
        const parameters = (operation.parameters ?? []).map(({ name }: { name: string }) => name).join(" ");
        const text = `${method.toUpperCase()} ${path} ${operation.description ?? ""} ${parameters} ${
          content ? members(content.schema) : ""
        }`;
        return { url: `../docs#${operation.operationId}`, page, heading: operation.summary, text };
      })
  );
  const events = Object.entries(api.webhooks ?? {}).map(([name, item]) => {
    const { post } = resolve(api, item);
    const text = `${post.summary} ${members(resolve(api, post.requestBody.content["application/json"].schema))}`;
    return { url: `../docs#event-${name}`, page, heading: name, text };
  });
  const errors = Object.entries(CATALOGUE).map(([code, { title, status }]) => ({
    url: `../docs#error-${code}`,
    page,
    heading: code,
    text: `${status} ${title}`,
  }));
  return [...operations, ...events, ...errors];
}
