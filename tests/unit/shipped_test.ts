import assert from "node:assert/strict";
import { join } from "node:path";
import { VERSION } from "../../src/shipped.ts";

const ROOT = join(import.meta.dirname!, "..", "..");

Deno.test("the version is the one of deno.json, of the extension and of the newest entry in the changelog", async () => {
  assert.equal(JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json"))).version, VERSION);
  assert.equal(JSON.parse(await Deno.readTextFile(join(ROOT, "extension", "manifest.json"))).version, VERSION);
  const changelog = await Deno.readTextFile(join(ROOT, "CHANGELOG.md"));
  assert.equal(/^## (\S+)/m.exec(changelog)?.[1], VERSION);
});

Deno.test("the extension may run on web.whatsapp.com, and nothing else", async () => {
  const manifest = JSON.parse(await Deno.readTextFile(join(ROOT, "extension", "manifest.json")));
  const described = ["manifest_version", "name", "short_name", "version", "description"];
  const bound = ["minimum_chrome_version", "browser_specific_settings"];
  assert.deepEqual(Object.keys(manifest), [...described, ...bound, "content_scripts"]);
  const { content_scripts: scripts } = manifest;
  assert.deepEqual(scripts.map(({ matches, js }: { matches: string[]; js: string[] }) => [matches, js]), [
    [["https://web.whatsapp.com/*"], ["sign.js"]],
  ]);
  const source = await Deno.readTextFile(join(ROOT, "extension", "sign.js"));
  assert.doesNotMatch(
    source,
    /\b(fetch|XMLHttpRequest|WebSocket|sendBeacon|localStorage|sessionStorage|indexedDB|cookie)\b/,
  );
});
