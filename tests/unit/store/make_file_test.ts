import assert from "node:assert/strict";
import { join } from "node:path";
import { denoKvFiles } from "../../../src/store/deno_kv/file_engine.ts";
import { makeFile } from "../../../src/store/deno_kv/make_file.ts";
import { testRuntime } from "../../support/runtime.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("a new store's file is there with its first page or not at all, its owner's alone, and stays what it is", async () => {
  await using temp = await tempFolder();
  const path = join(temp.path, "data", "store.db");
  // Two first starts at once.
  await Promise.all([makeFile(path), makeFile(path)]);
  const { size, ino, mode } = await Deno.stat(path);
  assert.ok(size > 0);
  if (Deno.build.os !== "windows") assert.equal(mode! & 0o777, 0o600);
  assert.deepEqual((await Array.fromAsync(Deno.readDir(join(temp.path, "data")))).map(({ name }) => name), [
    "store.db",
  ]);
  (await denoKvFiles.open(path, { runtime: testRuntime() })).close();

  await makeFile(path);
  assert.equal((await Deno.stat(path)).ino, ino);
});
