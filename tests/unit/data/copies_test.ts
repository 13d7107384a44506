import assert from "node:assert/strict";
import { exists } from "../../../src/base/files.ts";
import { makeCopyFolder, removeLeftCopies } from "../../../src/data/copies.ts";
import { denoKvFiles } from "../../../src/store/deno_kv/file_engine.ts";

const HOLDER = new URL("../../support/copies_holder.ts", import.meta.url).pathname;

Deno.test("a killed process's copies go when another one begins, and those of who lives stay", async () => {
  const own = await makeCopyFolder(denoKvFiles);
  const other = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", HOLDER],
    stdout: "piped",
  }).spawn();
  const lines = other.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const copies = (await lines.read()).value!.trim();
  await lines.cancel();
  const there = async () => [await exists(own.path), await exists(copies)];

  await removeLeftCopies(denoKvFiles);
  assert.deepEqual(await there(), [true, true]);
  other.kill("SIGKILL");
  await other.status;
  assert.ok(await exists(copies), "nobody has removed them yet");
  await removeLeftCopies(denoKvFiles);
  assert.deepEqual(await there(), [true, false]);
  own[Symbol.dispose]();
  assert.deepEqual(await there(), [false, false]);
});
