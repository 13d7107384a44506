/** A store's file that is empty, cut short or damaged refuses to open, and stays as it is. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type Runtime, systemRuntime } from "../../../src/runtime.ts";
import { denoKvFiles } from "../../../src/store/deno_kv/file_engine.ts";
import { Change, StoreError } from "../../../src/store/kv.ts";
import { testRuntime } from "../../support/runtime.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const runtime: Runtime = systemRuntime(testRuntime().log);

/** Runs with the path of a closed store of some hundred rows. */
async function withStore(run: (path: string) => Promise<void>): Promise<void> {
  await using temp = await tempFolder();
  const path = join(temp.path, "store.db");
  const kv = await denoKvFiles.open(path, { runtime });
  for (let i = 0; i < 10; i++) {
    const change = new Change();
    for (let k = 0; k < 50; k++) change.set(["row", i, k], "x".repeat(500));
    await kv.commit(change);
  }
  kv.close();
  await run(path);
}

const DAMAGES: [name: string, alter: (bytes: Uint8Array) => Uint8Array, said: RegExp][] = [
  ["is empty", () => new Uint8Array(), /it is empty/],
  ["is cut short", (bytes) => bytes.slice(0, bytes.length / 2), /malformed|missing|invalid|out of order/i],
  ["has pages of something else", (bytes) => bytes.fill(0x41, 3 * 4096, 12 * 4096), /is damaged/],
  ["is no database", (bytes) => bytes.fill(0x41, 0, 100), /not a database/],
];

for (const [name, alter, said] of DAMAGES) {
  Deno.test(`a store whose file ${name} is refused in one line, and left alone`, () =>
    withStore(async (path) => {
      const damaged = alter(await Deno.readFile(path));
      await Deno.writeFile(path, damaged);
      await assert.rejects(denoKvFiles.open(path, { runtime }), (error) => {
        assert.ok(error instanceof StoreError && error.code === "unavailable");
        assert.match(error.message, said);
        assert.ok(!error.message.includes("\n"));
        return true;
      });
      assert.deepEqual(await Deno.readFile(path), damaged);
    }));
}

Deno.test("a sound store opens, and so does one that is not there yet", () =>
  withStore(async (path) => {
    const kv = await denoKvFiles.open(path, { runtime });
    assert.equal((await kv.get(["row", 9, 49])).value, "x".repeat(500));
    kv.close();
  }));

Deno.test("a store that cannot be read is not called damaged, with advice to begin anew", () =>
  withStore(async (path) => {
    await Deno.rename(path, `${path}.away`);
    await Deno.mkdir(path);
    await assert.rejects(
      denoKvFiles.open(path, { runtime }),
      (error) => error instanceof StoreError && /is the disk full/.test(error.message),
    );
  }));
