/** The store's disk is full and the bell goes on ringing; `scripts/checks/full_disk.ts` does the same for a minute. */
import assert from "node:assert/strict";

const SCRIPT = new URL("../../scripts/checks/full_disk.ts", import.meta.url).pathname;
/** What the script exits with where it cannot mount a small file system. */
const CANNOT_MOUNT = 3;

Deno.test("a full disk refuses commits, ends neither the process nor the bell, and is written again when there is room", async () => {
  const args = ["run", "-A", "--quiet", SCRIPT, "--seconds", "2"];
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args }).output();
  const said = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  if (code === CANNOT_MOUNT) return console.log(said);
  assert.equal(code, 0, said);
  assert.match(said, /\d+ commits refused; writes again/);
});
