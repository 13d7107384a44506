import assert from "node:assert/strict";
import { join } from "node:path";
import { generatedFiles } from "../../../scripts/clients.ts";
import { VERSION } from "../../../src/shipped.ts";

const ROOT = join(import.meta.dirname!, "../../..");

Deno.test("what clients take from the document is what `deno task clients` makes of it, the version too", async () => {
  for (const [path, text] of await generatedFiles()) {
    assert.ok(await Deno.readTextFile(join(ROOT, path)) === text, `${path} differs: run \`deno task clients\``);
  }
  for (const path of ["python/pyproject.toml", "php/composer.json", "typescript/package.json"]) {
    const [, version] = (await Deno.readTextFile(join(ROOT, "clients", path))).match(/^\W*version\W+([\d.]+)"/m) ?? [];
    assert.equal(version, VERSION, path);
  }
});
