/** A message that ends the process, really: with the journal on disk, and processes that die of it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { networkKeys } from "../../../../src/whatsapp/baileys/rows.ts";
import { fill, journalAt, LINE_ID, POISON } from "../../../support/poisoned_process.ts";
import { tempFolder } from "../../../support/temp_folder.ts";

const PROGRAM = new URL("../../../support/poisoned_process.ts", import.meta.url).pathname;

Deno.test("a message that ends the process does so twice; the next one sets it aside, and all others arrive", async () => {
  await using temp = await tempFolder();
  const path = join(temp.path, "store.db");
  await fill(path, ["before", POISON, "after"]);
  const live = async () => {
    const args = ["run", "-A", "--no-check", PROGRAM, path];
    const { signal, stdout } = await new Deno.Command(Deno.execPath(), { args, stderr: "inherit" }).output();
    return { signal, told: new TextDecoder().decode(stdout) };
  };
  for (const attempts of [1, 2]) {
    assert.deepEqual(await live(), { signal: "SIGKILL", told: "" });
    const { kv, journal } = await journalAt(path);
    const left = (await journal.leftovers()).decrypted;
    kv.close();
    const poison = left.find(({ attrs }) => attrs.id === POISON);
    assert.equal(poison?.attempts, attempts);
  }
  const { signal, told } = await live();
  assert.equal(signal, null);
  assert.deepEqual(JSON.parse(told), { handed: [[POISON, true], ["after", false]], setAside: 1 });
  const { kv } = await journalAt(path);
  const { value } = await kv.get(networkKeys.waAside(LINE_ID, `part of ${POISON}`));
  kv.close();
  assert.notEqual(value, null, "kept for a report");
});
