import assert from "node:assert/strict";
import { join } from "node:path";
import { VERSION } from "../../src/version.ts";

const ROOT = join(import.meta.dirname!, "..", "..");

Deno.test("the version is the one of deno.json and of the newest entry in the changelog", async () => {
  assert.equal(JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json"))).version, VERSION);
  const changelog = await Deno.readTextFile(join(ROOT, "CHANGELOG.md"));
  assert.equal(/^## (\S+)/m.exec(changelog)?.[1], VERSION);
});
