/** What is shipped is what the lock file names. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { tempFolder } from "../../support/temp_folder.ts";

const ROOT = join(import.meta.dirname!, "../../..");
const SCRIPTS = ["scripts/compile.ts", "scripts/packages.ts"];

Deno.test("nothing is compiled against a lock file that does not fit, and the file stays as it is", async () => {
  await using temp = await tempFolder();
  const root = temp.path;
  await Deno.mkdir(join(root, "scripts"));
  for (const script of SCRIPTS) await Deno.copyFile(join(ROOT, script), join(root, script));
  // A package that this project has, and a lock file that knows nothing of it.
  const { imports } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  await Deno.writeTextFile(join(root, "deno.json"), JSON.stringify({ imports: { ulid: imports.ulid } }));
  await Deno.writeTextFile(join(root, "main.ts"), 'import "ulid";\n');
  const lock = '{\n  "version": "5"\n}\n';
  await Deno.writeTextFile(join(root, "deno.lock"), lock);

  const compile = new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-all", "--no-check", "--no-lock", join(root, "scripts/compile.ts")],
    cwd: root,
    env: { COMPILE_DENO: Deno.execPath(), NO_COLOR: "1" },
    stdout: "null",
    stderr: "piped",
  });
  const { code, stderr } = await compile.output();
  assert.notEqual(code, 0);
  assert.match(new TextDecoder().decode(stderr), /lockfile is out of date/i);
  assert.equal(await Deno.readTextFile(join(root, "deno.lock")), lock);
  await assert.rejects(Deno.stat(join(root, "dist/paloma")), Deno.errors.NotFound);
});
