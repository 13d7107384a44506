import assert from "node:assert/strict";
import { AlreadyRunning, lockGateway } from "../../../src/data/gateway_lock.ts";
import { denoKvFiles } from "../../../src/store/deno_kv/file_engine.ts";

const HOLDER = new URL("../../support/lock_holder.ts", import.meta.url).pathname;

Deno.test("a data folder takes one gateway at a time", async () => {
  const folder = await Deno.makeTempDir();
  try {
    if (Deno.uid() === 0) await Deno.chown(folder, 4711, 4711);
    const first = await lockGateway(folder, denoKvFiles);
    assert.equal((await Deno.stat(`${folder}/gateway.lock`)).uid, (await Deno.stat(folder)).uid);
    await assert.rejects(lockGateway(folder, denoKvFiles), AlreadyRunning);
    first.release();
    first.release();
    (await lockGateway(folder, denoKvFiles)).release();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("the folder of a killed gateway can be taken at once", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const holder = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", HOLDER, folder],
      stdout: "piped",
    }).spawn();
    const reader = holder.stdout.getReader();
    await reader.read();
    await assert.rejects(lockGateway(folder, denoKvFiles), AlreadyRunning);
    holder.kill("SIGKILL");
    await holder.status;
    (await lockGateway(folder, denoKvFiles)).release();
    await reader.cancel();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
