import assert from "node:assert/strict";
import { AlreadyRunning, lockGateway } from "../../../src/data/gateway_lock.ts";
import { denoKvFiles } from "../../../src/store/deno_kv/file_engine.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const HOLDER = new URL("../../support/lock_holder.ts", import.meta.url).pathname;

Deno.test("a data folder takes one gateway at a time", async () => {
  await using temp = await tempFolder();
  const folder = temp.path;
  if (Deno.uid() === 0) await Deno.chown(folder, 4711, 4711);
  const first = await lockGateway(folder, denoKvFiles);
  assert.equal((await Deno.stat(`${folder}/gateway.lock`)).uid, (await Deno.stat(folder)).uid);
  await assert.rejects(lockGateway(folder, denoKvFiles), AlreadyRunning);
  first.release();
  first.release();
  (await lockGateway(folder, denoKvFiles)).release();
});

Deno.test("the folder of a killed gateway can be taken at once", async () => {
  await using temp = await tempFolder();
  const holder = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", HOLDER, temp.path],
    stdout: "piped",
  }).spawn();
  const reader = holder.stdout.getReader();
  await reader.read();
  await assert.rejects(lockGateway(temp.path, denoKvFiles), AlreadyRunning);
  holder.kill("SIGKILL");
  await holder.status;
  (await lockGateway(temp.path, denoKvFiles)).release();
  await reader.cancel();
});
