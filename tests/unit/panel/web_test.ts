/** The panel's pages, read as text: every sentence is there in every language. */
import assert from "node:assert/strict";
import { join } from "node:path";
import es from "../../../src/panel/web/lang/es.js";
import pt from "../../../src/panel/web/lang/pt.js";
import said from "../../../src/panel/web/lang/said.js";
import { readHouse } from "../../support/house.ts";

const ROOT = join(import.meta.dirname!, "..", "..", "..");
const WEB = join(ROOT, "src", "panel", "web");

async function sentences(): Promise<Set<string>> {
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

for (const [language, words] of Object.entries({ es, pt }) as [string, Record<string, string>][]) {
  Deno.test(`every sentence of the panel is there in ${language}, with its blanks, and none too many`, async () => {
    const wanted = await sentences();
    assert.ok(wanted.size > 300, `only ${wanted.size} sentences were found`);
    assert.deepEqual([...wanted].filter((sentence) => !(sentence in words)), [], "not translated");
    assert.deepEqual(Object.keys(words).filter((sentence) => !wanted.has(sentence)), [], "not used");
    const blanks = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();
    for (const [sentence, translated] of Object.entries(words)) assert.deepEqual(blanks(translated), blanks(sentence));
  });
}

Deno.test("what the panel translates of the gateway's words the gateway says, in these words", async () => {
  const code = (await readHouse(ROOT)).map((file) => file.code).join("\n").replaceAll(/"\s*\+\s*"/g, "");
  const parts = (sentence: string) => sentence.split(/\{\w+\}/).map((part) => part.trim());
  const isSaid = (sentence: string) => parts(sentence).every((part) => part.length < 4 || code.includes(part));
  assert.deepEqual(said.filter((sentence) => !isSaid(sentence)), []);
});

Deno.test("the document names every module that the first one imports: nobody waits for one round trip after another", async () => {
  const wanted = new Set<string>();
  async function follow(name: string): Promise<void> {
    if (wanted.has(name)) return;
    wanted.add(name);
    if (name.startsWith("lib/")) return;
    const text = await Deno.readTextFile(join(WEB, name));
    for (const [, imported] of text.matchAll(/\bfrom "\.\/([^"]+)"/g)) await follow(imported!);
  }
  await follow("main.js");
  const named = (await Deno.readTextFile(join(WEB, "index.html"))).matchAll(/assets\/([^"]+\.js)"/g);
  assert.deepEqual([...named].map(([, name]) => name!).sort(), [...wanted].sort());
});
