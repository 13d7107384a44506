/** Previews of links: what a page says of itself, within bounds, and nothing where it does not answer. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { EgressError } from "../../../src/egress/egress_error.ts";
import type { SafeFetch, SafeRequest } from "../../../src/egress/safe_fetch.ts";
import { headOf, makeFetchPreview } from "../../../src/message/link_preview.ts";
import { settle, testRuntime } from "../../support/runtime.ts";

const NEVER = new AbortController().signal;

type Page =
  | { type: string; body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> }
  | "silence"
  | EgressError;

function previews(pages: Record<string, Page>) {
  const runtime = testRuntime();
  const asked: string[] = [];
  const fetch = ({ url }: SafeRequest) => {
    asked.push(url);
    const page = pages[url] ?? new EgressError("forbidden_address", "no");
    if (page === "silence") return new Promise<never>(() => {});
    if (page instanceof EgressError) return Promise.reject(page);
    const headers = new Headers({ "content-type": page.type });
    const body = page.body instanceof ReadableStream ? page.body : new Blob([page.body]).stream();
    return Promise.resolve({ status: 200, headers, body, url: new URL(url) });
  };
  const safeFetch = { fetch } as unknown as SafeFetch;
  return { runtime, asked, fetchPreview: makeFetchPreview({ safeFetch, clock: runtime.clock }) };
}

const PAGE = {
  type: "text/html; charset=utf-8",
  body: '<html><head><title>plain</title><meta property="og:title" content="Shop &amp; more">' +
    '<meta name="description" content=" All\n you need "><meta property="og:image" content="/a.png"></head><body>',
};

Deno.test("the first link of a text is shown with title, description and picture", async () => {
  const { fetchPreview, asked } = previews({
    "https://shop.example/x": PAGE,
    "https://shop.example/a.png": { type: "image/png", body: "picture" },
  });
  assert.deepEqual(await fetchPreview("see https://shop.example/x. And http://other.example", NEVER), {
    url: "https://shop.example/x",
    title: "Shop & more",
    description: "All you need",
    picture: new TextEncoder().encode("picture"),
  });
  assert.deepEqual(asked, ["https://shop.example/x", "https://shop.example/a.png"]);
});

Deno.test("a page is copied as it arrives, so that the pieces of one in tiny chunks need no memory", async () => {
  const piece = new Uint8Array(1);
  const bytes = new TextEncoder().encode(PAGE.body).values();
  const body = new ReadableStream({
    pull(controller) {
      const { value, done } = bytes.next();
      if (done) return controller.close();
      // A list of the pieces would hold this one many times.
      piece[0] = value;
      controller.enqueue(piece);
    },
  }, { highWaterMark: 0 });
  const { fetchPreview } = previews({ "https://shop.example": { ...PAGE, body } });
  assert.equal((await fetchPreview("https://shop.example", NEVER))?.title, "Shop & more");
});

Deno.test("a text without a link asks nobody", async () => {
  const { fetchPreview, asked } = previews({});
  assert.equal(await fetchPreview("ftp://example.com, mail a@b.c and https://", NEVER), null);
  assert.deepEqual(asked, []);
});

Deno.test("an address that may not be called, and what is no page, are shown without", async () => {
  const { fetchPreview } = previews({ "https://a.example/f": { type: "application/pdf", body: "%PDF" } });
  assert.equal(await fetchPreview("http://10.0.0.1/", NEVER), null);
  assert.equal(await fetchPreview("https://a.example/f", NEVER), null);
});

Deno.test("a page that does not answer holds nothing up for longer than 5 s", async () => {
  const { fetchPreview, runtime } = previews({ "https://slow.example": "silence" });
  let answer: unknown = "none yet";
  fetchPreview("https://slow.example", NEVER).then((value) => answer = value);
  await runtime.clock.advance(4_999);
  await settle();
  assert.equal(answer, "none yet");
  await runtime.clock.advance(1);
  await settle();
  assert.equal(answer, null);
});

Deno.test("a page without marks is shown by its title, and one without a title not at all", async () => {
  assert.deepEqual(await headOf("<title>A\n title</title><p><title>other</title>"), {
    title: "A title",
    description: null,
    image: null,
  });
  assert.equal((await headOf('<meta property="og:title" content=" "><body>')).title, null);
  assert.equal([...(await headOf(`<title>${"👋".repeat(300)}`)).title!].length, 200);
});

Deno.test("a page is read in the encoding that its header names, or it by itself", async () => {
  const latin1 = (text: string) => new Uint8Array(Buffer.from(text, "latin1"));
  const { fetchPreview } = previews({
    "https://a.example": { type: "text/html; charset=ISO-8859-1", body: latin1("<title>Información</title>") },
    "https://b.example": { type: "text/html", body: latin1('<meta charset="windows-1252"><title>Über uns</title>') },
    "https://c.example": { type: "text/html; charset=klingon", body: "<title>Über uns</title>" },
  });
  const titles = ["a", "b", "c"].map(async (name) => (await fetchPreview(`https://${name}.example`, NEVER))?.title);
  assert.deepEqual(await Promise.all(titles), ["Información", "Über uns", "Über uns"]);
});

Deno.test("a page is read no further than any head is long", async () => {
  const nested = (count: number) => headOf("<button>".repeat(count) + "<title>A title</title>");
  assert.equal((await nested(2_000)).title, "A title");
  assert.equal((await nested(6_000)).title, null);
});

Deno.test("a page of thousands of open tags and closing ones is read in one pass", async () => {
  const bomb = "<a>".repeat(4_990) + "</b>".repeat(124_000);
  // The parser above the tokenizer compared each closing tag with each open one: some 600,000,000 times.
  assert.equal((await headOf(`<title>A title</title>${bomb}`)).title, "A title");
  const marks = '<META Property="og:title" content="Fish &amp; chips &#x1F35F;"/><title>x</title>';
  assert.deepEqual(await headOf(marks + "<meta name=description content=fresh>"), {
    title: "Fish & chips 🍟",
    description: "fresh",
    image: null,
  });
  const long = await headOf(`<title>${"x".repeat(400_000)}</title><meta property=og:image content=/p.png>`);
  assert.deepEqual([long.title?.length, long.image], [200, "/p.png"]);
});
