/** The panel's pages, read as text: every sentence is there in every language. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { Hono } from "@hono/hono";
import type { ApiEnv } from "../../../src/http/api/route.ts";
import { addPages } from "../../../src/panel/web.ts";
import { readHouse } from "../../support/house.ts";

const ROOT = join(import.meta.dirname!, "..", "..", "..");
const WEB = join(ROOT, "src", "panel", "web");

async function sentences(said: string[]): Promise<Set<string>> {
  const found = new Set<string>(said);
  for (const folder of [WEB, join(WEB, "pages")]) {
    for await (const { name, isFile } of Deno.readDir(folder)) {
      if (!isFile || !name.endsWith(".js")) continue;
      const text = await Deno.readTextFile(join(folder, name));
      for (const [, one, many] of text.matchAll(/\btn?\(\s*("(?:[^"\\]|\\.)*")(?:,\s*("(?:[^"\\]|\\.)*"))?/g)) {
        for (const sentence of [one, many]) if (sentence) found.add(JSON.parse(sentence));
      }
    }
  }
  return found;
}

/** The module of a language as a browser gets it. */
async function served(language: string): Promise<{ default: Record<string, string>; said: string[] }> {
  const app = new Hono<ApiEnv>();
  addPages(app, () => Promise.resolve(null));
  const response = await app.request(`http://localhost/panel/assets/lang/${language}.js`);
  assert.equal(response.headers.get("content-type"), "text/javascript; charset=utf-8");
  return await import(`data:text/javascript,${encodeURIComponent(await response.text())}`);
}

for (const language of ["es", "pt"]) {
  Deno.test(`every sentence of the panel is there in ${language}, with its blanks, and none too many`, async () => {
    const { default: words, said } = await served(language);
    const wanted = await sentences(said);
    assert.ok(wanted.size > 300, `only ${wanted.size} sentences were found`);
    assert.deepEqual([...wanted].filter((sentence) => !(sentence in words)), [], "not translated");
    assert.deepEqual(Object.keys(words).filter((sentence) => !wanted.has(sentence)), [], "not used");
    const blanks = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();
    for (const [sentence, translated] of Object.entries(words)) assert.deepEqual(blanks(translated), blanks(sentence));
  });
}

Deno.test("the table of sentences is sorted, and each row has every language", async () => {
  const table = await Deno.readTextFile(join(WEB, "lang.tsv"));
  const [head, ...rows] = table.trimEnd().split("\n").map((row) => row.split("\t"));
  assert.deepEqual(head, ["said by", "en", "es", "pt"]);
  assert.deepEqual(rows.filter((row) => row.length !== head!.length || row.includes("")), []);
  assert.deepEqual(rows.filter(([by]) => by !== "gateway" && by !== "panel"), []);
  const sentences = rows.map(([, english]) => english!);
  assert.deepEqual(sentences, [...new Set(sentences)].sort());
});

Deno.test("what the panel translates of the gateway's words the gateway says, in these words", async () => {
  const code = (await readHouse(ROOT)).map((file) => file.code).join("\n").replaceAll(/"\s*\+\s*"/g, "");
  const parts = (sentence: string) => sentence.split(/\{\w+\}/).map((part) => part.trim());
  const { said } = await served("es");
  assert.ok(said.length > 100, `only ${said.length} sentences were found`);
  const isSaid = (sentence: string) => parts(sentence).every((part) => part.length < 4 || code.includes(part));
  assert.deepEqual(said.filter((sentence) => !isSaid(sentence)), []);
});

Deno.test("a text of the gateway is held against its own sentence before a more general one", async () => {
  const { said } = await served("es");
  const literal = (part: string) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const patterns = said.map((sentence) => new RegExp(`^${sentence.split(/\{\w+\}/).map(literal).join(".+")}$`));
  const taken = (text: string) => said[patterns.findIndex((pattern) => pattern.test(text))];
  for (const sentence of said) assert.equal(taken(sentence.replaceAll(/\{\w+\}/g, "7")), sentence);
});

Deno.test("the document names all that its page loads: nobody waits for one round trip after another", async () => {
  const app = new Hono<ApiEnv>();
  let reader: Parameters<typeof addPages>[1] = () => Promise.resolve({ accountId: "acc_1" });
  addPages(app, (c) => reader(c));
  const assets = "http://localhost/panel/assets/";
  const at = async (path: string) => {
    const url = `http://localhost/panel/${path}`;
    const response = await app.request(url);
    const named = (await response.text()).matchAll(/(?:modulepreload"|script type="module").*?="([^"]+)"/g);
    const link = response.headers.get("link") ?? "";
    return {
      modules: [...named].map(([, name]) => new URL(name!, url).href.replace(assets, "")),
      first: [...link.matchAll(/<([^>]+)>/g)].map(([, name]) => new URL(name!, url).pathname),
    };
  };
  const { modules, first } = await at("accounts/acc_1/chats");
  const wanted = new Set(["main.js", "pages/chats.js"]);
  for (const name of wanted) {
    const text = await (await app.request(assets + name)).text();
    for (const [, imported] of text.matchAll(/\bfrom "(\.[^"]+)"/g)) wanted.add(join(name, "..", imported!));
  }
  assert.ok(wanted.has("pages/turn.js") && wanted.has("lib.js"));
  assert.deepEqual([...new Set(modules)].sort(), [...wanted].sort());
  assert.deepEqual(first, ["/panel/api/accounts/acc_1/v1/sessions"]);
  assert.deepEqual((await at("accounts/acc_1/messages?status=failed")).first, []);
  // What a person may not open, nothing is asked for.
  reader = () => Promise.resolve({ accountId: "acc_1", role: "agent" });
  assert.deepEqual((await at("accounts/acc_1/lines")).first, []);
  reader = () => Promise.resolve(null);
  assert.deepEqual((await at("accounts/acc_1/chats")).first, []);
});
