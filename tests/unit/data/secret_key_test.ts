import assert from "node:assert/strict";
import { join } from "node:path";
import { secretKey } from "../../../src/data/secret_key.ts";
import { seededRandom } from "../../support/runtime.ts";
import { tempFolder } from "../../support/temp_folder.ts";

async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
  await using temp = await tempFolder();
  await run(join(temp.path, "data"));
}

const options = (folder: string, seed = 1) => ({ random: seededRandom(seed), sealed: join(folder, "store.db") });

Deno.test("a configured key is used as it is, and nothing is written", () =>
  withFolder(async (folder) => {
    assert.equal(await secretKey(folder, "configured-secret-key", options(folder)), "configured-secret-key");
    await assert.rejects(Deno.stat(folder), Deno.errors.NotFound);
  }));

Deno.test("a key is made once, readable by its owner only", () =>
  withFolder(async (folder) => {
    const made = await secretKey(folder, null, options(folder));
    assert.match(made, /^[0-9a-f]{64}$/);
    assert.equal(await secretKey(folder, null, options(folder, 2)), made);
    if (Deno.build.os === "windows") return;
    assert.equal((await Deno.stat(folder)).mode! & 0o777, 0o700);
    assert.equal((await Deno.stat(join(folder, "secret.key"))).mode! & 0o777, 0o600);
  }));

Deno.test("the key that root makes in another user's folder is that user's", () =>
  withFolder(async (folder) => {
    if (Deno.build.os === "windows") return;
    await Deno.mkdir(folder);
    if (Deno.uid() === 0) await Deno.chown(folder, 4711, 4711);
    await secretKey(folder, null, options(folder));
    assert.equal((await Deno.stat(join(folder, "secret.key"))).uid, (await Deno.stat(folder)).uid);
  }));

Deno.test("many who make the key at once get the same", () =>
  withFolder(async (folder) => {
    const made = await Promise.all(
      Array.from({ length: 8 }, (_, seed) => secretKey(folder, null, options(folder, seed))),
    );
    assert.equal(new Set(made).size, 1);
  }));

Deno.test("a key that is gone is not replaced while data is there that needs it", () =>
  withFolder(async (folder) => {
    await secretKey(folder, null, options(folder));
    await Deno.writeTextFile(options(folder).sealed, "sealed data");
    assert.match(await secretKey(folder, null, options(folder)), /^[0-9a-f]{64}$/);
    await Deno.remove(join(folder, "secret.key"));
    await assert.rejects(secretKey(folder, null, options(folder)), { code: "secret_key_wrong" });
    await assert.rejects(secretKey(folder, null, options(folder)), /PALOMA_SECRET_KEY/);
    const left = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
    assert.deepEqual(left, ["store.db"], "nothing is there that looks like a key");
  }));

Deno.test("a damaged key file is refused, not overwritten", () =>
  withFolder(async (folder) => {
    await Deno.mkdir(folder);
    await Deno.writeTextFile(join(folder, "secret.key"), "abc\n");
    await assert.rejects(secretKey(folder, null, options(folder)), /damaged/);
    assert.equal(await Deno.readTextFile(join(folder, "secret.key")), "abc\n");
  }));
