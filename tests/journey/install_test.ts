/** `install.sh` against a release on loopback: what has the right checksum is installed, anything else is not. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { tryProgram } from "../support/gateway_process.ts";
import { tempFolder } from "../support/temp_folder.ts";

const SCRIPT = join(import.meta.dirname!, "..", "..", "install.sh");
const NAME = `paloma-${Deno.build.arch}-${Deno.build.os === "darwin" ? "apple-darwin" : "unknown-linux-gnu"}`;
/** In place of the executable: the installer asks it for its version. */
const PROGRAM = "#!/bin/sh\necho 9.9.9\n";

/** A file's text, or where it is said to lie. */
type File = string | { location: string };

async function install(
  release: Record<string, File>,
  prepare: (bin: string) => Promise<void> = () => Promise.resolve(),
): Promise<{ code: number; said: string; installed: string[] }> {
  await using temp = await tempFolder();
  await prepare(join(temp.path, "bin"));
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request) => {
    const file = release[new URL(request.url).pathname.slice(1)];
    if (file === undefined) return new Response(null, { status: 404 });
    if (typeof file === "string") return new Response(file);
    return new Response(null, { status: 302, headers: { location: file.location } });
  });
  try {
    const { code, stdout, stderr } = await tryProgram("/bin/sh", [SCRIPT, join(temp.path, "bin")], {
      PATH: "/usr/bin:/bin",
      PALOMA_RELEASES: `http://127.0.0.1:${server.addr.port}`,
    });
    const installed = await Array.fromAsync(Deno.readDir(join(temp.path, "bin")), ({ name }) => name).catch(() => []);
    return { code, said: stdout + stderr, installed };
  } finally {
    await server.shutdown();
  }
}

const sums = (text: string) => `${createHash("sha256").update(text).digest("hex")}  ${NAME}\n`;

Deno.test("an executable with the release's checksum is installed", async () => {
  const { code, said, installed } = await install({ [NAME]: PROGRAM, SHA256SUMS: sums(PROGRAM) });
  assert.equal(code, 0, said);
  assert.deepEqual(installed, ["paloma"]);
  assert.match(said, /paloma is 9\.9\.9/);
});

Deno.test("one with another checksum, none, or no file at all is not", async () => {
  for (
    const release of [
      { [NAME]: PROGRAM, SHA256SUMS: sums("another") },
      { [NAME]: PROGRAM, SHA256SUMS: "" },
      { SHA256SUMS: sums(PROGRAM) },
    ] as Record<string, string>[]
  ) {
    const { code, said, installed } = await install(release);
    assert.notEqual(code, 0, said);
    assert.deepEqual(installed, []);
  }
});

Deno.test("one that does not run here takes the place of none", async () => {
  const strange = "#!/no/such/interpreter\n";
  const { code, said, installed } = await install({ [NAME]: strange, SHA256SUMS: sums(strange) });
  assert.notEqual(code, 0, said);
  assert.match(said, /does not run here; nothing was installed/);
  assert.deepEqual(installed, []);
});

Deno.test("a release leads to no other scheme than the web's", async () => {
  const location = "ftp://127.0.0.1:9/SHA256SUMS";
  const { code, said, installed } = await install({ [NAME]: PROGRAM, SHA256SUMS: { location } });
  assert.equal(code, 1, "curl's code of a scheme that it may not use");
  assert.match(said, /ftp.*(disabled|not supported)/i);
  assert.deepEqual(installed, []);
});

Deno.test("nothing is written through a link that waits in the folder", async () => {
  await using other = await tempFolder();
  const kept = join(other.path, "kept");
  await Deno.writeTextFile(kept, "as it was");
  const { code, said, installed } = await install({ [NAME]: PROGRAM, SHA256SUMS: sums(PROGRAM) }, async (bin) => {
    await Deno.mkdir(bin);
    for (const name of ["paloma", ".paloma.new"]) await Deno.symlink(kept, join(bin, name));
  });
  assert.equal(code, 0, said);
  assert.deepEqual(installed.sort(), [".paloma.new", "paloma"]);
  assert.equal(await Deno.readTextFile(kept), "as it was");
});
