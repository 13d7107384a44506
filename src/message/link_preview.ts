/**
 * Makes the preview of the first link in a text. Fetches through `SafeFetch`, so that no private address is reached.
 */
import { firstBytes } from "../base/gathered_bytes.ts";
import { within } from "../base/within.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import type { Clock } from "../runtime.ts";
import type { LinkPreview } from "../whatsapp/outgoing.ts";

/** Time limit for page and picture together; a message with a slower page is sent without a preview. */
const WITHIN_MS = 5_000;
/** The part of a page that is read for its head. */
const PAGE_BYTES = 512 * 1024;
const PICTURE_BYTES = 2 * 1024 * 1024;
const MAX_REDIRECTS = 3;
/** More than any real head has. */
const MAX_TAGS = 5_000;
/** Characters of a title, or of an attribute, that are read; and of a name. */
const LONGEST_TEXT = 8 * 1024;
const LONGEST_NAME = 64;
const MAX_TITLE = 200;
const MAX_DESCRIPTION = 400;
/** Matches a URL without the punctuation that ends a sentence. */
const LINK = /\bhttps?:\/\/[^\s<>"']*[^\s<>"'.,;:!?)\]}*_~]/i;

/** Resolves to null for a text without a link, or if the page gives no title in time. Never rejects. */
export type FetchPreview = (text: string, signal: AbortSignal) => Promise<LinkPreview | null>;

export function makeFetchPreview({ safeFetch, clock }: { safeFetch: SafeFetch; clock: Clock }): FetchPreview {
  async function read(url: string, options: { accept: string; maxBytes: number; signal: AbortSignal }) {
    const { accept, maxBytes, signal } = options;
    const { status, headers, body, url: from } = await safeFetch.fetch({
      url,
      method: "GET",
      // Many sites serve their metadata only to clients that identify themselves as making previews.
      headers: { accept, "user-agent": "WhatsApp/2 (link preview)" },
      schemes: ["https:", "http:"],
      maxRedirects: MAX_REDIRECTS,
      timeoutMs: WITHIN_MS,
      maxBytes: maxBytes * 4,
      signal,
    });
    const type = headers.get("content-type") ?? "";
    const fits = status === 200 && accept.split(",").some((wanted) => type.startsWith(wanted));
    if (!fits || headers.get("content-encoding")) {
      await body.cancel();
      return null;
    }
    return { type, bytes: await firstBytes(body, maxBytes), from };
  }

  async function picture(url: string, signal: AbortSignal): Promise<Uint8Array | null> {
    const answer = await read(url, { accept: "image/jpeg,image/png", maxBytes: PICTURE_BYTES, signal }).catch(() =>
      null
    );
    return answer && answer.bytes.length < PICTURE_BYTES ? answer.bytes : null;
  }

  async function preview(url: string, signal: AbortSignal): Promise<LinkPreview | null> {
    const page = await read(url, { accept: "text/html,application/xhtml+xml", maxBytes: PAGE_BYTES, signal });
    const head = page && await headOf(textOf(page));
    if (!head?.title) return null;
    const { title, description, image } = head;
    const address = image && URL.canParse(image, page!.from) ? new URL(image, page!.from).href : null;
    return { url, title, description, picture: address ? await picture(address, signal) : null };
  }

  return async (text, signal) => {
    const url = LINK.exec(text)?.[0];
    if (!url || !URL.canParse(url)) return null;
    const over = new AbortController();
    const found = preview(url, AbortSignal.any([signal, over.signal])).catch(() => null);
    const answer = await within(clock, WITHIN_MS, found, signal);
    over.abort();
    return answer === "late" ? null : answer;
  };
}

/**
 * The part of a page that may declare its encoding, if the header does not (HTML,
 * "Determining the character encoding").
 */
const ENCODING_BYTES = 1024;
const ENCODING = /charset\s*=\s*["']?([\w:.-]{1,40})/i;

function textOf({ type, bytes }: { type: string; bytes: Uint8Array }): string {
  const beginning = new TextDecoder("latin1").decode(bytes.subarray(0, ENCODING_BYTES));
  const [, encoding = "utf-8"] = ENCODING.exec(type) ?? ENCODING.exec(beginning) ?? [];
  try {
    return new TextDecoder(encoding).decode(bytes);
  } catch {
    // An unknown encoding.
    return new TextDecoder().decode(bytes);
  }
}

interface Head {
  title: string | null;
  description: string | null;
  /** URL, possibly relative. */
  image: string | null;
}

/**
 * Reads the metadata of a page. Open Graph takes precedence over the page's own title and description. By the tokenizer
 * alone: the parser above it searches its open tags for each closing one, so that half a megabyte of both takes seconds.
 */
export async function headOf(html: string): Promise<Head> {
  const { Tokenizer } = await import("htmlparser2");
  const said = new Map<string, string>();
  let tags = 0;
  let tag = "";
  let [name, value] = ["", ""];
  let attributes = new Map<string, string>();
  /** The title's text while it is read; null outside it. */
  let title: string | null = null;
  const add = (text: string) => {
    if (title !== null && title.length < LONGEST_TEXT) title += text.slice(0, LONGEST_TEXT);
  };
  const keep = (key: string, text: string) => said.has(key) || said.set(key, text.slice(0, LONGEST_TEXT));
  const endTitle = () => {
    if (title !== null) keep("title", title);
    title = null;
  };
  const opened = () => {
    if (tag === "title") title = "";
    if (tag !== "meta") return;
    const key = (attributes.get("property") ?? attributes.get("name") ?? "").toLowerCase();
    const content = attributes.get("content");
    if (key && content) keep(key, content);
  };
  const ignored = () => {};
  const tokenizer = new Tokenizer({ decodeEntities: true }, {
    onopentagname(start, end) {
      endTitle();
      tag = html.slice(start, Math.min(end, start + LONGEST_NAME)).toLowerCase();
      attributes = new Map();
      if (tag === "body" || ++tags === MAX_TAGS) tokenizer.pause();
    },
    onattribname: (start, end) =>
      [name, value] = [html.slice(start, Math.min(end, start + LONGEST_NAME)).toLowerCase(), ""],
    onattribdata(start, end) {
      if (value.length < LONGEST_TEXT) value += html.slice(start, Math.min(end, start + LONGEST_TEXT));
    },
    onattribentity: (code) => value += String.fromCodePoint(code),
    onattribend() {
      if (tag === "meta" && !attributes.has(name)) attributes.set(name, value);
    },
    onopentagend: opened,
    onselfclosingtag: opened,
    ontext: (start, end) => add(html.slice(start, end)),
    ontextentity: (code) => add(String.fromCodePoint(code)),
    onclosetag: endTitle,
    oncdata: ignored,
    oncomment: ignored,
    ondeclaration: ignored,
    onend: ignored,
    onprocessinginstruction: ignored,
  });
  tokenizer.write(html);
  endTitle();
  const first = (keys: string[], limit: number) => {
    const text = keys.map((key) => said.get(key)?.replaceAll(/\s+/g, " ").trim()).find((value) => value);
    return text ? [...text].slice(0, limit).join("") : null;
  };
  return {
    title: first(["og:title", "twitter:title", "title"], MAX_TITLE),
    description: first(["og:description", "twitter:description", "description"], MAX_DESCRIPTION),
    image: said.get("og:image") ?? said.get("twitter:image") ?? null,
  };
}
