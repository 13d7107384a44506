/** The reference: its page is whole, and its samples work when they are pasted. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { mock } from "node:test";
import { brotliDecompressSync } from "node:zlib";
import { exampleOf, rowsOf, typeOf } from "../../../src/http/docs/web/schema.js";
import { KEY, SAMPLES } from "../../../src/http/docs/web/samples.js";
import { addressOf, guides, listedGuides } from "../../../src/http/docs/guides.ts";
import { CONTENTS } from "../../../src/http/docs/contents.ts";
import { partsOf } from "../../../src/http/docs/web/colours.js";
import { find } from "../../../src/http/docs/web/find.js";
import { listen } from "../../../src/http/listen/listen.ts";
import { openApiDocument } from "../../../src/http/docs/openapi.ts";
import { assertFits, operations } from "../../support/api_contract.ts";
import { type ApiWorld, withApi } from "../../support/api_world.ts";
import { tempFolder } from "../../support/temp_folder.ts";
import { silentRuntime } from "../../support/runtime.ts";

Deno.test("everything that the page asks for is there, and from here", () =>
  withApi(async (world) => {
    const waiting = ["/docs"];
    const seen = new Set<string>();
    for (let path = waiting.pop(); path; path = waiting.pop()) {
      if (seen.has(path)) continue;
      seen.add(path);
      const response = await world.call("GET", path, { key: null });
      const text = await response.text();
      assert.equal(response.status, 200, path);
      if (path.endsWith(".png")) continue;
      assert.equal(response.headers.get("x-content-type-options"), path === "/openapi.json" ? null : "nosniff");
      if (path.endsWith(".json")) continue;
      for (
        const [whole, found] of text.matchAll(
          /(?:href="|src="|from "|import "|fetch\("|URL\("(?=search))((?!\w+:)[^"#]+)(?:#[^"]*)?"/g,
        )
      ) {
        if (/^[./]*(?:docs|panel)$/.test(found!)) continue;
        waiting.push(new URL(found!, `http://x${whole.startsWith("fetch") ? "/docs" : path}`).pathname);
      }
    }
    assert.deepEqual(listedGuides().map((guide) => `/docs/${addressOf(guide)}`).filter((path) => !seen.has(path)), []);
    assert.deepEqual([...seen].filter((path) => !/^\/docs\/(?:guides|recipes)\//.test(path)).sort(), [
      "/docs",
      "/docs/colours.js",
      "/docs/docs.css",
      "/docs/docs.js",
      "/docs/dom.js",
      "/docs/find.js",
      "/docs/guide.js",
      "/docs/reader.js",
      "/docs/samples.js",
      "/docs/schema.js",
      "/docs/search.js",
      "/docs/search.json",
      "/docs/side.js",
      "/docs/start.js",
      "/docs/theme.css",
      "/docs/try_it.js",
      "/openapi.json",
      "/panel/assets/icon.svg",
    ]);
  }));

Deno.test("a file that is not there is not found, however long its name", () =>
  withApi(async (world) => {
    for (const name of ["none", "a".repeat(300)]) {
      for (const path of [`/docs/guides/images/${name}.png`, `/panel/assets/${name}.js`, `/docs/${name}.js`]) {
        const response = await world.call("GET", path, { key: null });
        await response.body?.cancel();
        assert.equal(response.status, 404, path);
      }
    }
  }));

/** For those who build Paloma, who find them from the README. */
const NOT_LISTED = ["benchmarks", "develop"];

Deno.test("the menu lists every page of docs/ but those of developers, and none that there is not", () => {
  const listed = CONTENTS.flatMap(({ pages }) => pages);
  assert.deepEqual([...listed, ...NOT_LISTED].sort(), guides().map(({ name }) => name).sort());
});

/** Words that people look for, and a section that has to be among the first five found. */
const SOUGHT: Readonly<Record<string, string>> = {
  invoice: "recipes/invoice-from-php",
  hmac: "guides/webhooks#python",
  incoming: "recipes/incoming-webhook",
  retry: "guides/webhooks#when-a-delivery-fails",
  ban: "guides/consent#why-it-matters",
  docker: "guides/operate",
  nginx: "guides/proxy",
  pdf: "guides/media",
  "webhook secret": "guides/webhooks",
  n8n: "guides/n8n",
  qr: "guides/linking",
  jid: "guides/groups",
  waha: "guides/migrate",
  prometheus: "guides/operate",
  gdpr: "guides/consent",
  sendAt: "guides/queue#later",
  quota_exceeded: "../docs#error-quota_exceeded",
  "message.received": "../docs#event-message.received",
};

Deno.test("the search finds by what people call it, leads to headings that exist, and says where the words stand", () =>
  withApi(async (world) => {
    const sections = await (await world.call("GET", "/docs/search.json", { key: null })).json();
    const firstFive = (query: string): string[] =>
      find(sections, query).slice(0, 5).map(({ section }: { section: { url: string } }) => section.url);
    const missed = Object.entries(SOUGHT).filter(([query, url]) =>
      !firstFive(query).some((found) => found.startsWith(url))
    );
    assert.deepEqual(
      missed.map(([query]) => [query, firstFive(query)]),
      [],
    );
    assert.deepEqual(find(sections, "message xyzzy"), []);
    assert.deepEqual(find(sections, "  "), []);
    assert.ok(find(sections, "(").length >= 0);
    const pages = new Map<string, string>();
    for (const { url } of sections) {
      const [page, anchor] = url.split("#");
      if (page === "../docs") continue;
      if (!pages.has(page)) pages.set(page, await (await world.call("GET", `/docs/${page}`, { key: null })).text());
      if (anchor) assert.ok(pages.get(page)!.includes(`id="${anchor}"`), url);
    }
  }));

Deno.test("what is coloured is what was written, and comments, strings and keywords are told apart", () => {
  const samples = guides().flatMap(({ markdown }) => [...markdown.matchAll(/```(\w*)\n(.*?)```/gs)]);
  assert.ok(samples.length > 20);
  for (const [, language, text] of samples) {
    assert.equal(partsOf(text!, language!).map((part) => part.text).join(""), text);
  }
  const kinds = (text: string, language: string) =>
    partsOf(text, language).filter(({ kind }) => kind).map(({ kind, text }) => `${kind} ${text}`);
  assert.deepEqual(kinds(`curl 'http://h/#x' -d '{"a": 1}' # so`, "sh"), [
    "string 'http://h/#x'",
    `string '{"a": 1}'`,
    "comment # so",
  ]);
  assert.deepEqual(kinds(`{"to": "34", "n": 5, "b": true}`, "json"), [
    'name "to"',
    'string "34"',
    'name "n"',
    "number 5",
    'name "b"',
    "keyword true",
  ]);
  assert.deepEqual(kinds(`return "a" // why\n`, "js"), ["keyword return", 'string "a"', "comment // why"]);
  assert.deepEqual(kinds("HTTP/1.1 200 OK", "text"), []);
});

Deno.test("the colours of samples can be read in both themes", async () => {
  const [theme, docs] = await Promise.all(
    ["theme", "docs"].map((name) => Deno.readTextFile(`src/http/docs/web/${name}.css`)),
  );
  const pairOf = (text: string) => [...text.matchAll(/#([0-9a-f]{6})/g)].map(([, hex]) => luminance(hex!));
  const grounds = pairOf(/--ground: (.*);/.exec(theme!)![1]!);
  const rules = [...docs!.matchAll(/::highlight\(\w+\) \{\s+color: (.*);/g)];
  assert.ok(rules.length >= 4);
  for (const [rule, colours] of rules) {
    pairOf(colours!).forEach((colour, i) => {
      const [dark, light] = [colour, grounds[i]!].sort((a, b) => a - b);
      // What axe asks for cannot be asked of ranges.
      assert.ok((light! + 0.05) / (dark! + 0.05) >= 4.5, rule);
    });
  }
});

/** Relative luminance, by WCAG 2. */
function luminance(hex: string): number {
  const [red, green, blue] = [0, 2, 4].map((at) => {
    const part = parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

Deno.test("a page that could not be read once is there at the next request", () =>
  withApi(async (world) => {
    const reading = mock.method(Deno, "readTextFile", () => Promise.reject(new Error("too many open files")));
    assert.equal((await world.call("GET", "/docs/docs.js", { key: null })).status, 500);
    reading.mock.restore();
    assert.equal((await world.call("GET", "/docs/docs.js", { key: null })).status, 200);
  }));

Deno.test("pages, scripts and the document go out compressed, and not at all to whoever has them", () =>
  withApi(async (world) => {
    for (
      const path of [
        "/docs",
        "/docs/docs.js",
        "/docs/guides/webhooks",
        "/openapi.json",
        "/panel",
        "/panel/assets/main.js",
      ]
    ) {
      const ask = (headers: Record<string, string>) => world.call("GET", path, { key: null, headers });
      const plain = await ask({});
      const text = await plain.text();
      const zipped = await ask({ "accept-encoding": "gzip" });
      assert.equal(zipped.headers.get("content-encoding"), "gzip", path);
      assert.equal(zipped.headers.get("vary"), "accept-encoding");
      assert.equal(await new Response(zipped.body!.pipeThrough(new DecompressionStream("gzip"))).text(), text, path);
      const brotli = await ask({ "accept-encoding": "gzip, deflate, br" });
      assert.equal(brotliDecompressSync(new Uint8Array(await brotli.arrayBuffer())).toString(), text, path);
      const again = await ask({ "if-none-match": plain.headers.get("etag")! });
      assert.deepEqual([again.status, await again.text()], [304, ""], path);
    }
  }));

Deno.test("a slash behind the page's address leads to the page", () =>
  withApi(async (world) => {
    const response = await world.call("GET", "/docs/", { key: null });
    await response.body?.cancel();
    assert.deepEqual([response.status, response.headers.get("location")], [302, "../docs"]);
  }));

Deno.test("the examples that the page makes of schemas fit them", () => {
  const api = openApiDocument();
  for (const { operation } of operations()) {
    const contents = [operation.requestBody, ...Object.values(operation.responses)].flatMap((part) =>
      Object.entries(part?.content ?? {})
    );
    for (const [type, { schema }] of contents) {
      if (!type.endsWith("json")) continue;
      assertFits(schema, exampleOf(api, schema), operation.operationId);
      assert.ok(rowsOf(api, schema).every((row: { type: string }) => row.type !== ""), operation.operationId);
    }
    for (const { schema } of operation.parameters ?? []) assert.ok(typeOf(api, schema).length > 0);
  }
});

Deno.test("a request that is tried as it stands names no session that nobody has", () => {
  const api = openApiDocument();
  const names = ["TextMessage", "DocumentMessage", "FileMessage", "BulkMessage", "SessionCreation", "WebhookCreation"];
  for (const name of names) {
    const example = exampleOf(api, { $ref: `#/components/schemas/${name}` });
    assert.equal("sessionId" in example || "pairingPhone" in example, false, name);
  }
});

/** How each language is run; one that is not on this machine is left out. */
const RUNNERS: Record<keyof typeof SAMPLES, { file: string; command: string[]; probe: string[] }> = {
  curl: { file: "sample.sh", command: ["sh"], probe: ["curl", "--version"] },
  JavaScript: {
    file: "sample.mjs",
    command: [Deno.execPath(), "run", "-A"],
    // The samples need it, and Deno 2.6 has it not.
    probe: [Deno.execPath(), "eval", "Deno.exit('openAsBlob' in await import('node:fs') ? 0 : 1)"],
  },
  Python: { file: "sample.py", command: ["python3"], probe: ["python3", "-c", "import requests"] },
  Go: { file: "sample.go", command: ["go", "run"], probe: ["go", "version"] },
  PHP: { file: "sample.php", command: ["php"], probe: ["php", "-r", "exit(extension_loaded('curl') ? 0 : 1);"] },
};

async function run([command, ...args]: string[], cwd?: string): Promise<{ code: number; output: string }> {
  try {
    const { code, stdout } = await new Deno.Command(command!, { args, cwd, stdout: "piped", stderr: "null" }).output();
    return { code, output: new TextDecoder().decode(stdout) };
  } catch {
    return { code: 127, output: "" };
  }
}

async function accepted(world: ApiWorld): Promise<number> {
  return (await (await world.call("GET", "/v1/messages/history")).json()).pagination.total;
}

for (const [language, write] of Object.entries(SAMPLES)) {
  const { file, command, probe } = RUNNERS[language as keyof typeof SAMPLES];
  const ignore = (await run(probe)).code !== 0;
  Deno.test(`the samples in ${language} send what they say`, { ignore }, () =>
    withApi(async (world) => {
      await world.linkedSession();
      await using temp = await tempFolder();
      const server = await listen(world.app, { host: "127.0.0.1", port: 0, runtime: silentRuntime() });
      try {
        await Deno.writeTextFile(join(temp.path, "it's a picture.png"), "a picture");
        const headers = { "x-api-key": KEY };
        const text = 'it\'s "quoted" \\ and $HOME `x` 👋\nnext line';
        const requests = [
          { url: `${server.url}/v1/messages/send/text`, json: { to: "34600111222", text } },
          {
            url: `${server.url}/v1/messages/send/file`,
            form: { to: "34600111222", caption: "it's here", file: { file: "it's a picture.png" } },
          },
        ];
        for (const [i, request] of requests.entries()) {
          const source = write({ method: "POST", headers, ...request }).replaceAll(KEY, world.apiKey);
          await Deno.writeTextFile(join(temp.path, file), source);
          const { output } = await run([...command, file], temp.path);
          assert.match(output, /msg_[0-9a-z]{26}/, source);
          assert.equal(await accepted(world), i + 1);
        }
        const { data: [upload, sent] } = await (await world.call("GET", "/v1/messages/history")).json();
        assert.equal(sent.text, text);
        assert.deepEqual([upload.filename, upload.caption], ["it's a picture.png", "it's here"]);
      } finally {
        await server.stop(0);
      }
    }));
}
