/** A store's log that is gone after a kill took the newest commits with it: that is told, and nothing else is. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { exists } from "../../../src/base/files.ts";
import { systemRuntime } from "../../../src/runtime.ts";
import { denoKvFiles } from "../../../src/store/deno_kv/file_engine.ts";
import { Change } from "../../../src/store/kv.ts";
import type { ChunkedKv } from "../../../src/store/layers/chunk.ts";
import { storeKeys } from "../../../src/store/layers/rows.ts";
import { testRuntime } from "../../support/runtime.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const WRITER = new URL("../../support/store_writer.ts", import.meta.url).pathname;

/** Runs with the path of a store that a killed process had open, and the number of rows that it was told are there. */
async function afterKill(run: (path: string, acknowledged: number) => Promise<void>): Promise<void> {
  await using temp = await tempFolder();
  const path = join(temp.path, "store.db");
  const args = ["run", "-A", "--no-check", WRITER, path, "100"];
  const writer = new Deno.Command(Deno.execPath(), { args, stdout: "piped" }).spawn();
  let said = "";
  for await (const text of writer.stdout.pipeThrough(new TextDecoderStream())) {
    if ((said += text).includes("done 40\n")) break;
  }
  writer.kill("SIGKILL");
  await writer.status;
  await run(path, said.match(/done \d+\n/g)!.length);
}

/** Opens the store; what is told is whether its log is missing, in the log and for good in a row. */
async function opened(path: string): Promise<{ kv: ChunkedKv; told: boolean; isKept: boolean; rows: number }> {
  const { log, lines } = testRuntime();
  const kv = await denoKvFiles.open(path, { runtime: systemRuntime(log) });
  const told = lines.some(({ msg }) => String(msg).startsWith("the store's log was removed"));
  const isKept = (await kv.get(storeKeys.logMissing())).value !== null;
  return { kv, told, isKept, rows: Number((await kv.get<bigint>(["rows"])).value ?? 0) };
}

Deno.test("after a kill the log brings everything back; without it, what is gone is told, and stays told", () =>
  afterKill(async (path, acknowledged) => {
    const copy = `${path}.copy`;
    for (const suffix of ["", "-wal", "-open"]) await Deno.copyFile(path + suffix, copy + suffix);
    const whole = await opened(copy);
    whole.kv.close();
    assert.ok(whole.rows >= acknowledged);
    assert.deepEqual([whole.told, whole.isKept], [false, false]);

    await Deno.remove(`${path}-wal`);
    const cut = await opened(path);
    cut.kv.close();
    assert.ok(cut.rows < acknowledged, `${cut.rows} of ${acknowledged} are left`);
    assert.deepEqual([cut.told, cut.isKept], [true, true]);
    const again = await opened(path);
    again.kv.close();
    assert.deepEqual([again.told, again.isKept], [false, true]);

    const command = await opened(copy);
    command.kv.close();
    assert.equal(command.told, false, "nor after a command, which closed the store that the kill had left");
  }));

Deno.test("the mark of an open store goes with the last who closes it, whatever it was doing", async () => {
  await using temp = await tempFolder();
  const path = join(temp.path, "store.db");
  const [first, second] = [await opened(path), await opened(path)];
  first.kv.close();
  assert.ok(await exists(`${path}-open`));
  const work = Array.from({ length: 50 }, (_, i) => second.kv.commit(new Change().set(["row", i], "x")));
  second.kv.close();
  await Promise.allSettled(work);
  assert.deepEqual([await exists(`${path}-wal`), await exists(`${path}-open`)], [false, false]);
  await Deno.remove(path);
  const next = await opened(path);
  next.kv.close();
  assert.equal(next.told, false);
});
