/** What the pages of the documentation name is there. */
import assert from "node:assert/strict";
import { join } from "node:path";

const ROOT = join(import.meta.dirname!, "..", "..");

async function pages(): Promise<string[]> {
  const found = ["README.md"];
  for (const folder of ["docs", "docs/decisions"]) {
    for await (const { name } of Deno.readDir(join(ROOT, folder))) {
      if (name.endsWith(".md")) found.push(join(folder, name));
    }
  }
  return found;
}

Deno.test("every file and folder that a page names exists", async () => {
  const missing: string[] = [];
  let named = 0;
  for (const page of await pages()) {
    const text = await Deno.readTextFile(join(ROOT, page));
    for (const [, path] of text.matchAll(/`((?:src|tests|scripts|docs|ops)\/[\w./-]*)`/g)) {
      named++;
      await Deno.stat(join(ROOT, path!)).catch(() => missing.push(`${page}: ${path}`));
    }
    for (const [, link] of text.matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)) {
      named++;
      await Deno.stat(join(ROOT, page, "..", link!)).catch(() => missing.push(`${page}: ${link}`));
    }
  }
  assert.deepEqual(missing, []);
  assert.ok(named > 50, `only ${named} were found`);
});
